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

/* The members of an object or of a row. */
void emit_alert_members(struct emit *e, const struct store_alert *alert);
void emit_alert_event_members(struct emit *e, const struct store_alert_event *event);

#endif
