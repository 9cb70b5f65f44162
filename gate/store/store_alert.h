/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_alert.h: alerts and the steps of their lives, in the same file as the history.
 *
 * An alert is opened by alerts.h, once for a confirmed verdict, a change of level or a jump of the
 * error. People take it through its states; the server itself closes it as fixed when the level
 * returns, as accepted when somebody accepted the new level as baseline, and opens it again when
 * that was too early.
 */
#ifndef GATE_STORE_STORE_ALERT_H
#define GATE_STORE_STORE_ALERT_H

#include "gate/store/store.h"

#define ALERT_MAX_REASON 500       /* characters */
#define ALERT_MAX_ASSIGNEE 64      /* the same */
#define ALERT_SERVER "gate-server" /* who, where the server itself did it */

enum alert_state {
    ALERT_NEW,
    ALERT_ACKNOWLEDGED,
    ALERT_ACCEPTED,
    ALERT_FIXED,
    ALERT_IGNORED,
    ALERT_STATES
};

enum alert_kind { ALERT_REGRESSION, ALERT_IMPROVEMENT, ALERT_ERROR, ALERT_WRONG, ALERT_KINDS };

/* The words of the API. */
const char *alert_state_name(enum alert_state state);
/* False: no such word. */
bool alert_state_of(const char *name, enum alert_state *out);

/* ---- writes: each in a transaction of its own, or a part of the one that is open ---- */

enum alert_step { STEP_DONE, STEP_NO_ALERT, STEP_REFUSED };

/* What somebody does with alerts. */
struct alert_action {
    bool has_state; /* takes them to the state `to` */
    enum alert_state to;
    const char *assignee; /* NULL: as it is, "": nobody */
    const char *who;
    const char *reason; /* "": none; the caller's rules say where it is needed */
    int64_t now_ms;
};

/*
 * Does it with all of the ids, a JSON array, or with none: *step is then not STEP_DONE, and
 * *refused the first one that prevents it. Steps that there are: from new to any other state, from
 * acknowledged to any that closes an alert, from any back to new.
 */
enum gate_status store_act_on_alerts(struct store *s, const char *ids,
                                     const struct alert_action *action, enum alert_step *step,
                                     int64_t *refused, struct gate_error *err);

/* ---- what alerts.c asks and does; in a transaction ---- */

/* An alert as far as the server handles it by itself. */
struct alert_row {
    int64_t id;
    enum alert_kind kind;
    enum alert_state state;
    bool confirmed;
    bool own_epoch; /* its run's is that of the item */
    bool by_server; /* its last step was the server's own */
    bool by_vendor;
    bool was_reopened;                 /* by the server */
    int64_t reopened_ms;               /* when a person last opened it again; 0: nobody did */
    int64_t place_ms, time_ms, run_id; /* the place of its run's commit */
    int64_t before_run_id, end_run_id; /* 0: none */
    double before, after, change;
};

/* The newest alerts of a series, and of wrong results of its track: at most `max`, *n of them. */
enum gate_status store_track_alerts(struct store *s, int64_t track_id,
                                    const struct store_series *series, const char *epoch,
                                    struct alert_row *out, size_t max, size_t *n,
                                    struct gate_error *err);
/* Opens it; its id is set. */
enum gate_status store_raise_alert(struct store *s, int64_t track_id,
                                   const struct store_series *series, struct alert_row *alert,
                                   int64_t now_ms, struct gate_error *err);
/* What is known by now of where it is and what it is worth; end_run_id too. */
enum gate_status store_move_alert(struct store *s, const struct alert_row *alert,
                                  struct gate_error *err);
/* A step of the server's own, whatever the state was; `end_run_id` 0: the level did not return. */
enum gate_status store_server_step(struct store *s, const struct alert_row *alert,
                                   enum alert_state to, int64_t end_run_id, const char *reason,
                                   int64_t now_ms, struct gate_error *err);

#endif
