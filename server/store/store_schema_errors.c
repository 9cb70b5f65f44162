/*
 * store_schema_errors.c: see store_schema.h. Version 7: the error over the vendor's own.
 *
 * point.vendor_ppm  the candidate's relative error over that of the vendor's kernel on the same
 *                   inputs, in millionths, since they take half of the bytes of a double
 *
 * alert.by_vendor   1: the values of an error alert are such ratios, not relative errors
 *
 * Of older files the newest 150 points of each series get it, which are all that the watch looks
 * at: both errors are on record, and the first provider of a run is the vendor. To write all points
 * anew would take minutes.
 */
#include "store_schema.h"

/* clang-format off */

const char store_schema_errors[] =
    "ALTER TABLE point ADD COLUMN vendor_ppm INTEGER CHECK (vendor_ppm >= 0);"
    "ALTER TABLE alert ADD COLUMN"
    "  by_vendor INTEGER NOT NULL DEFAULT 0 CHECK (by_vendor IN (0, 1));"

    "UPDATE point SET vendor_ppm = n.ppm FROM ("
    /* With a single min() the other columns are of its row: that of the first provider. */
    "  SELECT p.series_id, p.time_ms, p.run_id, p.arm, min(v.arm),"
    "    CAST(round(min(p.rel_err / v.rel_err * 1e6, 9e15)) AS INTEGER) AS ppm "
    "  FROM series o CROSS JOIN point p ON p.series_id = o.id AND p.role = 0 AND p.rel_err >= 0"
    "    AND p.time_ms >= coalesce((SELECT f.time_ms FROM point f WHERE f.series_id = o.id"
    "      ORDER BY f.time_ms DESC LIMIT 1 OFFSET 149), 0) "
    "  CROSS JOIN series x ON x.track_id = o.track_id "
    /* "+ 0", or it would be searched for by that range, since the two times are equal */
    "  CROSS JOIN point v ON v.series_id = x.id AND v.time_ms = p.time_ms + 0"
    "    AND v.run_id = p.run_id AND v.role = 1 AND v.rel_err > 0 "
    "  GROUP BY p.series_id, p.time_ms, p.run_id, p.arm) n "
    "WHERE point.series_id = n.series_id AND point.time_ms = n.time_ms"
    "  AND point.run_id = n.run_id AND point.arm = n.arm;";

/* clang-format on */
