/* plain.c: see plain.h. */
#include "plain.h"

#include <stdio.h>
#include <string.h>

#include "report/report_units.h"
#include "store/store_alert.h"
#include "store/store_change.h"
#include "store/store_result.h"
#include "text/xml.h"

#define N_RUNS 25
#define N_CASES 500

/* One page in the making. */
struct page {
    struct buf *out;
    struct store *store;
    struct store_scope scope;
    int64_t n_rows; /* of the table at hand */
};

static void put_cell(struct buf *out, const char *text)
{
    buf_puts(out, "<td>");
    xml_text(out, text);
    buf_puts(out, "</td>");
}

/* A number's cell; `known` false: a dash. */
static void put_number(struct buf *out, bool known, const char *text)
{
    buf_puts(out, "<td class=\"number\">");
    xml_text(out, known ? text : "\u2013");
    buf_puts(out, "</td>");
}

static void put_verdict(struct buf *out, const char *verdict)
{
    buf_puts(out, "<td><span class=\"verdict ");
    xml_text(out, verdict);
    buf_puts(out, "\">");
    xml_text(out, strcmp(verdict, "no-verdict") == 0 ? "no verdict" : verdict);
    buf_puts(out, "</span></td>");
}

static void put_time(struct buf *out, int64_t ms)
{
    char iso[UNITS_MAX];
    char text[UNITS_MAX];
    buf_printf(out, "<td><time datetime=\"%s\">%s UTC</time></td>", units_time_iso(ms, iso),
               units_time(ms, text));
}

static void put_commit(struct buf *out, const struct store_run *run)
{
    char text[16];
    snprintf(text, sizeof(text), "%.9s%s", run->commit, run->dirty ? "+" : "");
    buf_puts(out, "<td class=\"mono\">");
    xml_text(out, text);
    buf_puts(out, "</td>");
}

/* The uuid is hex digits and dashes: the schema says so. */
static void put_run_link(struct buf *out, const char *uuid)
{
    buf_printf(out, "<td><a class=\"mono\" href=\"plain?run=%s\">%.8s</a></td>", uuid, uuid);
}

/* A table in a box that scrolls; the box has a name of its own for readers of screens. */
static void put_heads(struct buf *out, const char *name, const char *const *heads, size_t n,
                      size_t first_number)
{
    buf_printf(out,
               "<div class=\"box\" role=\"region\" tabindex=\"0\" aria-label=\"%s\">"
               "<table><thead><tr>",
               name);
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "<th scope=\"col\"%s>%s</th>", i >= first_number ? " class=\"number\"" : "",
                   heads[i]);
    buf_puts(out, "</tr></thead><tbody>\n");
}
#define PUT_HEADS(out, name, first_number, ...)                                                    \
    put_heads(out, name, (const char *const[]){__VA_ARGS__},                                       \
              sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *), first_number)

static void put_run_cells(struct buf *out, const struct store_run *run)
{
    char counts[96];
    snprintf(counts, sizeof(counts), "%d of %d pass", run->n_pass, run->n_cases);
    put_verdict(out, run->verdict);
    put_cell(out, run->device_name);
    put_time(out, run->time_ms);
    put_commit(out, run);
    put_cell(out, run->branch);
    put_cell(out, run->subject);
    put_cell(out, counts);
    put_run_link(out, run->uuid);
    buf_puts(out, "</tr>\n");
}

static bool device_row(void *context, const struct store_device *row)
{
    struct page *page = context;
    page->n_rows++;
    buf_puts(page->out, "<tr>");
    put_run_cells(page->out, &row->newest);
    return true;
}

static bool run_row(void *context, const struct store_run *row)
{
    struct page *page = context;
    buf_puts(page->out, "<tr>");
    put_run_cells(page->out, row);
    return true;
}

/* As the dashboard writes it: the reports are ASCII. */
static const char *duration(double ns, char out[UNITS_MAX + 1])
{
    char text[UNITS_MAX];
    const char *micro = strstr(units_duration(ns, text), " us");
    if (micro)
        snprintf(out, UNITS_MAX + 1, "%.*s \u00b5s", (int)(micro - text), text);
    else
        snprintf(out, UNITS_MAX + 1, "%s", text);
    return out;
}

/* The change with its interval, as the reports have it. */
static void put_change(struct buf *out, const struct store_case *row)
{
    char text[4 * UNITS_MAX];
    char change[UNITS_MAX], lo[UNITS_MAX], hi[UNITS_MAX];
    units_change(row->ratio, change);
    if (row->ratio_lo > 0 && row->ratio_hi > 0)
        snprintf(text, sizeof(text), "%s (%s to %s)", change,
                 units_signed_percent(row->ratio_lo - 1, lo), units_change(row->ratio_hi, hi));
    else
        snprintf(text, sizeof(text), "%s", change);
    put_number(out, row->ratio > 0, text);
}

/* How far the result was from the reference, or that it was too far. */
static void put_verified(struct buf *out, const struct store_case *row)
{
    char text[UNITS_MAX];
    snprintf(text, sizeof(text), "%.1e", row->rel_err);
    bool wrong = strcmp(row->verdict, "wrong") == 0;
    put_number(out, wrong || row->rel_err > 0, wrong ? "failed" : text);
}

static void put_peer(struct buf *out, const struct store_case *row)
{
    char text[UNITS_MAX + 80];
    snprintf(text, sizeof(text), "%.2f\u00d7 %.64s", row->peer_ratio, row->peer ? row->peer : "");
    put_number(out, row->peer_ratio > 0, text);
}

static bool alert_row(void *context, const struct store_alert *alert)
{
    struct buf *out = context;
    char text[UNITS_MAX];
    xml_text(out, alert->kind == ALERT_ERROR ? "error" : units_change(1 + alert->change, text));
    buf_puts(out, " since <span class=\"mono\">");
    buf_printf(out, "%.9s</span>", alert->commit); /* hexadecimal digits: the schema says so */
    return true;
}

/* What an open alert found, and since which commit; or since when the verdict is what it is. */
static void put_since(const struct page *page, const struct store_case *row)
{
    struct gate_error err = {0};
    int64_t id = 0;
    bool found = false;
    buf_puts(page->out, "<td class=\"number\">");
    if (store_open_alert(page->store, row->track, &id, &err) == GATE_OK && id != 0)
        store_find_alert(page->store, id, alert_row, page->out, &found, &err);
    else if (row->since.commit[0] != '\0')
        buf_printf(page->out, "since <span class=\"mono\">%.9s</span>", row->since.commit);
    buf_puts(page->out, "</td>");
}

static bool case_row(void *context, const struct store_case *row)
{
    struct page *page = context;
    char text[UNITS_MAX + 1];
    if (++page->n_rows > N_CASES)
        return false;
    buf_puts(page->out, "<tr>");
    put_verdict(page->out, row->verdict);
    buf_puts(page->out, "<td class=\"case\">");
    xml_text(page->out, row->id);
    buf_puts(page->out, "</td>");
    put_cell(page->out, row->device_model);
    put_number(page->out, row->p50_ns > 0, duration(row->p50_ns, text));
    put_change(page->out, row);
    put_number(page->out, row->mde > 0, units_percent(row->mde, text));
    put_verified(page->out, row);
    put_peer(page->out, row);
    put_number(page->out, row->ceiling > 0, units_share(row->ceiling, text));
    put_since(page, row);
    buf_puts(page->out, "</tr>\n");
    return true;
}

static void put_head(struct buf *out, const struct assets *assets)
{
    buf_printf(out,
               "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
               "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">"
               "<meta name=\"color-scheme\" content=\"light dark\"><title>Kernel Gate</title>"
               "<link rel=\"icon\" href=\"%s\" type=\"image/svg+xml\">",
               assets_address(assets, "icon.svg").text);
    buf_printf(out,
               "<link rel=\"stylesheet\" href=\"%s\"></head>\n<body class=\"plain\"><main>"
               "<h1>Kernel Gate</h1>\n<p>",
               assets_address(assets, "style.css").text);
}

static void put_start(struct buf *out, const struct assets *assets)
{
    put_head(out, assets);
    buf_puts(out, assets_has_page(assets)
                      ? "The page without scripts; <a href=\"./\">the dashboard</a> needs "
                        "JavaScript."
                      : "This server was built without the dashboard (WEB=0); this plain page "
                        "and the API are all there is.");
    buf_puts(out, " The numbers, as JSON and as CSV:");
    static const char *const lists[] = {"runs", "cases", "leaderboard", "devices"};
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        buf_printf(out,
                   "%s <a href=\"api/v1/%s\">%s</a> "
                   "(<a href=\"api/v1/%s?format=csv\">CSV</a>)",
                   i > 0 ? "," : "", lists[i], lists[i], lists[i]);
    buf_puts(out, ".</p>\n");
}

/* Which runs are shown, and the way to the others. */
static void put_scope(struct page *page, bool none_watched)
{
    if (page->scope.watched_only)
        buf_puts(page->out, "<p>Of runs of the watched branches. <a href=\"plain?all=1\">Of all "
                            "branches</a></p>\n");
    else if (none_watched)
        buf_puts(page->out, "<p>No run is of a watched branch (--watch-branch): this is of all "
                            "branches.</p>\n");
    else
        buf_puts(page->out, "<p>Of runs of all branches. <a href=\"plain\">Of the watched ones "
                            "only</a></p>\n");
}

static bool any_row(void *context, const struct store_device *row)
{
    (void)row;
    *(bool *)context = true;
    return false;
}

/* The watched branches, unless all are asked for or none of them has a run. */
static enum gate_status choose_scope(struct page *page, const struct watch_branches *watched,
                                     const struct request *request, bool *none_watched,
                                     struct gate_error *err)
{
    bool found = false;
    page->scope = (struct store_scope){.watched = watched};
    *none_watched = false;
    if (request_parameter(request, "all"))
        return GATE_OK;
    page->scope.watched_only = true;
    enum gate_status status = store_devices(page->store, &page->scope, any_row, &found, err);
    page->scope.watched_only = found;
    *none_watched = !found;
    return status;
}

static enum gate_status put_cases(struct page *page, struct gate_error *err)
{
    buf_puts(page->out, "<h2>Cases, the newest result of each, worst first</h2>\n");
    PUT_HEADS(page->out, "Cases", 3, "Verdict", "Case", "Device", "p50", "Change", "MDE",
              "Verified", "vs provider", "Of ceiling", "Since");
    page->n_rows = 0;
    const struct store_case_query query = {
        .scope = page->scope, .sort = STORE_CASES_WORST, .limit = N_CASES + 1};
    struct store_case_page cases;
    enum gate_status status = store_cases(page->store, &query, case_row, page, &cases, err);
    buf_puts(page->out, "</tbody></table></div>\n");
    if (page->n_rows > N_CASES)
        buf_puts(page->out, "<p>There are more; the API has them in pages.</p>\n");
    return status;
}

static enum gate_status put_runs(struct page *page, struct gate_error *err)
{
    const struct store_run_filter filter = {.scope = page->scope};
    const struct store_run_key start = {INT64_MAX, ""};
    buf_puts(page->out, "<h2>Newest runs</h2>\n");
    PUT_HEADS(page->out, "Runs", 9, "Verdict", "Device", "When", "Commit", "Branch", "Subject",
              "Cases", "Run");
    enum gate_status status = store_runs(page->store, &filter, start, N_RUNS, run_row, page, err);
    buf_puts(page->out, "</tbody></table></div>\n");
    return status;
}

static enum gate_status put_tables(struct page *page, bool none_watched, struct gate_error *err)
{
    put_scope(page, none_watched);
    buf_puts(page->out, "<h2>Newest verdict of each device</h2>\n");
    PUT_HEADS(page->out, "Devices", 9, "Verdict", "Device", "When", "Commit", "Branch", "Subject",
              "Cases", "Run");
    enum gate_status status = store_devices(page->store, &page->scope, device_row, page, err);
    buf_puts(page->out, "</tbody></table></div>\n");
    if (status == GATE_OK)
        status = put_cases(page, err);
    return status == GATE_OK ? put_runs(page, err) : status;
}

/* ---- one run ---- */

/* Worst first: the results come in no order. */
static const int order_of_verdicts[STORE_N_VERDICTS] = {3, 1, 5, 4, 2, 0};

struct results {
    struct buf rows[STORE_N_VERDICTS];
};

static bool result_row(void *context, const struct store_result *row)
{
    struct results *results = context;
    struct buf *out = &results->rows[store_verdict_code(row->verdict)];
    char text[UNITS_MAX + 1];
    char error[UNITS_MAX];
    snprintf(error, sizeof(error), "%.1e", row->rel_err);
    buf_puts(out, "<tr>");
    put_verdict(out, row->verdict);
    buf_puts(out, "<td class=\"case\">");
    xml_text(out, row->case_id);
    buf_puts(out, "</td>");
    put_number(out, row->p50_ns > 0, duration(row->p50_ns, text));
    put_number(out, row->p50_lo_ns > 0, duration(row->p50_lo_ns, text));
    put_number(out, row->p50_hi_ns > 0, duration(row->p50_hi_ns, text));
    put_number(out, row->rel_err >= 0, error);
    buf_puts(out, "</tr>\n");
    return true;
}

static enum gate_status put_results(struct page *page, int64_t run, struct gate_error *err)
{
    struct results results;
    for (int i = 0; i < STORE_N_VERDICTS; i++)
        buf_init(&results.rows[i], REPLY_MAX_BODY);
    enum gate_status status = store_results(page->store, run, result_row, &results, err);
    PUT_HEADS(page->out, "Cases", 2, "Verdict", "Case", "p50", "from", "to", "Verified");
    for (int i = 0; i < STORE_N_VERDICTS; i++) {
        struct buf *rows = &results.rows[order_of_verdicts[i]];
        buf_append(page->out, rows->data, rows->len);
        page->out->failed |= rows->failed;
    }
    for (int i = 0; i < STORE_N_VERDICTS; i++)
        buf_release(&results.rows[i]);
    buf_puts(page->out, "</tbody></table></div>\n");
    return status;
}

static bool named_run(void *context, const struct store_run *run)
{
    struct page *page = context;
    page->n_rows++;
    buf_puts(page->out, "<h2>Run ");
    xml_text(page->out, run->uuid);
    buf_puts(page->out, "</h2>\n");
    PUT_HEADS(page->out, "Run", 9, "Verdict", "Device", "When", "Commit", "Branch", "Subject",
              "Cases", "Run");
    run_row(page, run);
    buf_printf(
        page->out,
        "</tbody></table></div>\n<p><a href=\"plain\">All cases</a>. All that it measured, as "
        "<a href=\"api/v1/runs/%s\">JSON</a> and <a href=\"api/v1/runs/%s?format=csv\">CSV</a>"
        ".</p>\n",
        run->uuid, run->uuid);
    return true;
}

/* `name`: its uuid or the beginning of it, or of its commit. */
static enum gate_status put_run(struct page *page, const char *name, struct reply *reply,
                                struct gate_error *err)
{
    int64_t id = 0;
    enum gate_status status = store_find_run(page->store, name, NULL, named_run, page, &id, err);
    if (status == GATE_OK)
        return put_results(page, id, err);
    if (status != GATE_USAGE)
        return status;
    reply->status = 404;
    buf_puts(page->out, "<p>There is no such run, or more than one. "
                        "<a href=\"plain\">All runs</a></p>\n");
    return GATE_OK;
}

/* Of one state of the store. */
static enum gate_status put_history(struct page *page, const struct watch_branches *watched,
                                    const struct request *request, struct reply *reply,
                                    struct gate_error *err)
{
    bool has_runs = false, none_watched = false;
    const char *run = request_parameter(request, "run");
    if (run)
        return put_run(page, run, reply, err);
    enum gate_status status =
        store_devices(page->store, &(struct store_scope){NULL}, any_row, &has_runs, err);
    if (status == GATE_OK && has_runs)
        status = choose_scope(page, watched, request, &none_watched, err);
    if (status == GATE_OK && has_runs)
        return put_tables(page, none_watched, err);
    buf_puts(page->out, "<p>There are no runs yet. <code>make run</code>, or <code>gate run "
                        "--device auto --db FILE</code>, brings the first.</p>\n");
    return status;
}

void plain_get(struct store *store, const struct assets *assets,
               const struct watch_branches *watched, const struct request *request,
               struct reply *reply)
{
    struct gate_error err = {0};
    struct page page = {.out = &reply->body, .store = store};
    reply->type = "text/html; charset=utf-8";
    put_start(page.out, assets);
    enum gate_status status = store_read_begin(store, &err);
    if (status == GATE_OK) {
        status = put_history(&page, watched, request, reply, &err);
        store_read_end(store);
    }
    buf_puts(page.out, "</main></body></html>\n");
    if (status != GATE_OK || page.out->failed) {
        fprintf(stderr, "gate-server: %s\n", err.message);
        reply_text(reply, 503, "The database cannot be read now; the server's log says why.");
        return;
    }
    reply->etag = etag_of(page.out->data, page.out->len);
}

void plain_refuse(const struct assets *assets, const char *why, struct reply *reply)
{
    struct buf *out = &reply->body;
    buf_clear(out);
    reply->type = "text/html; charset=utf-8";
    put_head(out, assets);
    buf_puts(out, "This server is private: reading it takes a token, which whoever runs it gives "
                  "you (<code>gate-server token create --scope read</code>). ");
    xml_text(out, why);
    buf_puts(out, "</p>\n");
    if (assets_has_page(assets))
        buf_puts(out,
                 "<p>With JavaScript <a href=\"./\">the dashboard</a> asks for it, and keeps it "
                 "in this browser.</p>\n");
    buf_puts(out, "<p>Without, a page can send none. A program can:</p>\n"
                  "<pre tabindex=\"0\"><code>curl -H \"Authorization: Bearer $TOKEN\" "
                  "http://SERVER/plain &gt; plain.html</code></pre>\n"
                  "</main></body></html>\n");
}
