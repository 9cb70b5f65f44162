/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alert_json.h: an alert and the steps of its life, as the API and the webhook tell them.
 */
#ifndef SERVER_API_ALERT_JSON_H
#define SERVER_API_ALERT_JSON_H

#include "server/text/emit.h"
#include "gate/store/store_alert.h"

#define ALERT_MAX_GROUP (2 * 40 + 3)

/* The name of its group: the range of commits that one cause lies in; where no commit is known, the
 * run. */
const char *alert_group(const struct store_alert *alert, char out[ALERT_MAX_GROUP]);

/* What an alert is about: "CASE on DEVICE is 5.0 % slower: 20.00 us to 21.00 us since commit C".
 * The one text of it for the page, the feed, the webhook and the log. */
#define ALERT_MAX_SENTENCE 500
const char *alert_sentence(const struct store_alert *alert, char out[ALERT_MAX_SENTENCE]);

/* The members of an object or of a row. */
void emit_alert_members(struct emit *e, const struct store_alert *alert);
void emit_alert_event_members(struct emit *e, const struct store_alert_event *event);

#endif
