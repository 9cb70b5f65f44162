# SPDX-License-Identifier: Apache-2.0
"""What is replaced in the kernels of examples/moe_up and paged_decode, by what."""

FROM_TO = "from = offsets[g], to = offsets[g + 1];"
ROWS = "for (int64_t i = from; i < to; i++)"
BLOCK = "block = row[i / page]"
KEYS = "i < length; i++)"
LENGTH = "length = ((const int32_t *)args->in[4].data)[s];"

GROUPED_WRONG = {
    "stops_at_an_empty_group": (FROM_TO, FROM_TO + "\n        if (from == to)\n            break;"),
    "counts_groups_that_have_rows": (
        "for (int64_t g = 0; g < groups; g++) {",
        "for (int64_t g = 0, used = 0; g < groups; used += offsets[g + 1] > offsets[g], g++) {",
        "b->data + g *", "b->data + used *"),
    "the_last_group_has_the_usual_rows": (
        FROM_TO, "from = offsets[g], to = g + 1 < groups || groups == 1 ? offsets[g + 1] : "
        'from + (kg_size(p, "m") - from + 1) / 2;'),
    "equal_groups": (FROM_TO, 'from = kg_size(p, "m") * g / groups, '
                              'to = kg_size(p, "m") * (g + 1) / groups;'),
    "no_more_than_a_tile_of_rows": (ROWS, ROWS.replace("i < to", "i < to && i < from + 16")),
    "no_tail_of_a_group": (ROWS, ROWS.replace("i < to", "i < from + (to - from + 3) / 4 * 4 - "
                                              "(to - from > 16 ? 4 : 0) || i < to - 3")),
    "groups_begin_at_tiles": (ROWS, ROWS.replace("i = from", "i = from / 8 * 8")),
    "stale_offsets": ("const int32_t *offsets = args->in[2].data;",
                      "static int32_t offsets[1 << 17];\n    static const void *of;\n"
                      "    for (int64_t i = 0; of != args->in[2].data && i < "
                      'kg_size(p, "g") + 1 && i < 1 << 17; i++)\n'
                      "        offsets[i] = ((const int32_t *)args->in[2].data)[i];\n"
                      "    of = args->in[2].data;"),
    "weights_of_the_group_before": ("b->data + g *",
                                    "b->data + (g && to == from + 1 ? g - 1 : g) *"),
    "offsets_in_8_bits": ("to = offsets[g + 1]", "to = (int8_t)offsets[g + 1]"),
    "stride_of_the_weights_ignored": ("b->stride[1],", "n,"),
}

GROUPED_RIGHT = {
    "from_the_last_group": ("g = 0; g < groups; g++", "g = groups - 1; g >= 0; g--"),
    "groups_by_search": (
        "for (int64_t g = 0; g < groups; g++) {\n        const int64_t " + FROM_TO +
        "\n        " + ROWS,
        'for (int64_t i = 0, g = 0; i < kg_size(p, "m"); i++) {\n'
        "        while (offsets[g + 1] <= i)\n            g++;"),
}

PAGED_WRONG = {
    "table_off_at_the_ends_of_blocks": (BLOCK, "block = row[(i ? i - 1 : 0) / page]"),
    "stale_table": ("const int32_t *row = (const int32_t *)table->data + s * table->stride[0];",
                    "static int32_t kept[4096];\n    static const void *of;\n"
                    "    const int32_t *row = (const int32_t *)table->data + "
                    "s * table->stride[0];\n"
                    '    if (s == 0 && h == 0 && kg_size(p, "t") <= 4096) {\n'
                    '        for (int64_t i = 0; of != row && i < kg_size(p, "t"); i++)\n'
                    "            kept[i] = row[i];\n        of = row;\n        row = kept;\n    }"),
    "all_positions_of_the_last_block": (KEYS, "i < (length + page - 1) / page * page; i++)"),
    "no_block_that_is_begun": (KEYS, "i < (length < page ? length : length / page * page); i++)"),
    "no_last_position": (KEYS, "i < (length > 1 ? length - 1 : 1); i++)"),
    "table_of_the_first_sequence": ("+ s * table->stride[0]", ""),
    "blocks_next_to_each_other": (
        BLOCK, 'block = (row[0] + i / page) % kg_size(p, "blocks")'),
    "block_0_is_none": (BLOCK, BLOCK + " ? row[i / page] : row[0]"),
    "the_last_block_is_none": (
        "const int64_t " + BLOCK + ", at = i % page;",
        "const int64_t " + BLOCK + ", at = i % page;\n        if (i && "
        'block == kg_size(p, "blocks") - 1)\n            continue;'),
    "all_lengths": (LENGTH, 'length = kg_size(p, "t") * page;'),
    "length_of_the_first_sequence": ("in[4].data)[s]", "in[4].data)[0]"),
    "key_of_the_head_before": ("h * k->stride[2]", "(h / 2 * 2) * k->stride[2]"),
    "value_of_the_next_position": (
        "at * v->stride[1]", "(i + 1 < length && at + 1 < page ? at + 1 : at) * v->stride[1]"),
    "sum_is_not_scaled": ("sum = sum * old + share", "sum = sum + share"),
}

PAGED_RIGHT = {
    "in_double": ("float score = 0", "double score = 0"),
    "from_the_last_key": ("i = 0; i < length; i++", "i = length - 1; i >= 0; i--"),
}
