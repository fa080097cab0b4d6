-- The summary's counts, kept as rows come in, so that reading them costs the same after ten million decisions.
--
-- They are derived: the record stays as it was taken, and the service may only read them. Triggers count, with the
-- owner's rights. A client's count of a rule is spread over 32 shards by backend, because one row would make every
-- commit of that client wait for the one before; the summary adds the shards up.
SET LOCAL ROLE paypilot_owner;

CREATE TABLE paypilot.invoice_states (
    client_id text NOT NULL,
    invoice_id text NOT NULL,
    rule text NOT NULL,
    decision_seq bigint NOT NULL,
    outcome text,
    outcome_seq bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (client_id, invoice_id)
) WITH (fillfactor = 80);

CREATE TABLE paypilot.rule_counts (
    client_id text NOT NULL,
    rule text NOT NULL,
    shard smallint NOT NULL,
    invoices bigint NOT NULL,
    paid bigint NOT NULL,
    not_paid bigint NOT NULL,
    PRIMARY KEY (client_id, rule, shard)
) WITH (fillfactor = 50);

-- Not forced: the triggers below run as the owner.
ALTER TABLE paypilot.invoice_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE paypilot.rule_counts ENABLE ROW LEVEL SECURITY;
CREATE POLICY one_client ON paypilot.invoice_states USING (client_id = current_setting('paypilot.client_id', true));
CREATE POLICY one_client ON paypilot.rule_counts USING (client_id = current_setting('paypilot.client_id', true));
GRANT SELECT ON paypilot.rule_counts TO paypilot_service;

-- Takes `change` times an invoice with this rule and outcome (null: unknown) into the counts.
CREATE FUNCTION paypilot.count_invoice(client text, invoice_rule text, outcome text, change integer)
    RETURNS void LANGUAGE sql SET search_path = '' AS $$
    INSERT INTO paypilot.rule_counts AS counts (client_id, rule, shard, invoices, paid, not_paid)
    VALUES (client, invoice_rule, pg_backend_pid() % 32, change,
            CASE WHEN outcome = 'paid' THEN change ELSE 0 END, CASE WHEN outcome = 'not_paid' THEN change ELSE 0 END)
    ON CONFLICT (client_id, rule, shard) DO UPDATE SET
        invoices = counts.invoices + EXCLUDED.invoices,
        paid = counts.paid + EXCLUDED.paid,
        not_paid = counts.not_paid + EXCLUDED.not_paid
$$;

-- The newest decision, by seq, gives an invoice its rule. The shared lock is what an erasure of the client waits for.
CREATE FUNCTION paypilot.count_decision() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    before paypilot.invoice_states;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(NEW.client_id, 0));
    LOOP
        SELECT * INTO before FROM paypilot.invoice_states
        WHERE client_id = NEW.client_id AND invoice_id = NEW.invoice_id FOR UPDATE;
        EXIT WHEN FOUND;
        INSERT INTO paypilot.invoice_states (client_id, invoice_id, rule, decision_seq)
        VALUES (NEW.client_id, NEW.invoice_id, NEW.rule, NEW.seq)
        ON CONFLICT DO NOTHING;
        IF FOUND THEN
            PERFORM paypilot.count_invoice(NEW.client_id, NEW.rule, NULL, 1);
            RETURN NULL;
        END IF;
    END LOOP;
    IF before.decision_seq > NEW.seq THEN
        RETURN NULL;
    END IF;
    UPDATE paypilot.invoice_states SET rule = NEW.rule, decision_seq = NEW.seq
    WHERE client_id = NEW.client_id AND invoice_id = NEW.invoice_id;
    -- In the order of their names, so that two transactions can't wait for each other's shard.
    IF before.rule < NEW.rule THEN
        PERFORM paypilot.count_invoice(NEW.client_id, before.rule, before.outcome, -1);
        PERFORM paypilot.count_invoice(NEW.client_id, NEW.rule, before.outcome, 1);
    ELSIF before.rule > NEW.rule THEN
        PERFORM paypilot.count_invoice(NEW.client_id, NEW.rule, before.outcome, 1);
        PERFORM paypilot.count_invoice(NEW.client_id, before.rule, before.outcome, -1);
    END IF;
    RETURN NULL;
END
$$;

-- The newest report, by seq, gives an invoice its outcome.
CREATE FUNCTION paypilot.count_outcome() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER SET search_path = '' AS $$
DECLARE
    before paypilot.invoice_states;
BEGIN
    PERFORM pg_advisory_xact_lock_shared(hashtextextended(NEW.client_id, 0));
    SELECT * INTO before FROM paypilot.invoice_states
    WHERE client_id = NEW.client_id AND invoice_id = NEW.invoice_id FOR UPDATE;
    -- The client was erased while this report was under way: tried again, it finds no decision to report on.
    IF NOT FOUND THEN
        RAISE EXCEPTION 'an outcome needs a decision' USING ERRCODE = 'serialization_failure';
    END IF;
    IF before.outcome_seq > NEW.seq THEN
        RETURN NULL;
    END IF;
    UPDATE paypilot.invoice_states SET outcome = NEW.outcome, outcome_seq = NEW.seq
    WHERE client_id = NEW.client_id AND invoice_id = NEW.invoice_id;
    IF before.outcome IS DISTINCT FROM NEW.outcome THEN
        PERFORM paypilot.count_invoice(NEW.client_id, before.rule, before.outcome, -1);
        PERFORM paypilot.count_invoice(NEW.client_id, before.rule, NEW.outcome, 1);
    END IF;
    RETURN NULL;
END
$$;

-- Counts everything anew from the record: for the rows that were there before, and for a bulk load without triggers.
CREATE FUNCTION paypilot.count_everything() RETURNS void LANGUAGE plpgsql SET search_path = '' AS $$
BEGIN
    LOCK TABLE paypilot.decision_audit, paypilot.decision_outcomes IN SHARE MODE;
    TRUNCATE paypilot.invoice_states, paypilot.rule_counts;
    INSERT INTO paypilot.invoice_states (client_id, invoice_id, rule, decision_seq)
    SELECT DISTINCT ON (client_id, invoice_id) client_id, invoice_id, rule, seq
    FROM paypilot.decision_audit ORDER BY client_id, invoice_id, seq DESC;
    UPDATE paypilot.invoice_states AS state SET outcome = newest.outcome, outcome_seq = newest.seq
    FROM (SELECT DISTINCT ON (client_id, invoice_id) client_id, invoice_id, outcome, seq
          FROM paypilot.decision_outcomes ORDER BY client_id, invoice_id, seq DESC) AS newest
    WHERE state.client_id = newest.client_id AND state.invoice_id = newest.invoice_id;
    INSERT INTO paypilot.rule_counts (client_id, rule, shard, invoices, paid, not_paid)
    SELECT client_id, rule, 0, count(*), count(*) FILTER (WHERE outcome = 'paid'),
           count(*) FILTER (WHERE outcome = 'not_paid')
    FROM paypilot.invoice_states GROUP BY client_id, rule;
END
$$;

REVOKE ALL ON FUNCTION paypilot.count_invoice(text, text, text, integer), paypilot.count_decision(),
    paypilot.count_outcome(), paypilot.count_everything() FROM PUBLIC;

CREATE TRIGGER count_decision AFTER INSERT ON paypilot.decision_audit
    FOR EACH ROW EXECUTE FUNCTION paypilot.count_decision();
CREATE TRIGGER count_outcome AFTER INSERT ON paypilot.decision_outcomes
    FOR EACH ROW EXECUTE FUNCTION paypilot.count_outcome();
ALTER TABLE paypilot.decision_audit ENABLE ALWAYS TRIGGER count_decision;
ALTER TABLE paypilot.decision_outcomes ENABLE ALWAYS TRIGGER count_outcome;

-- Row-level security is forced, so the owner sees no rows to count: it is lifted for this transaction.
ALTER TABLE paypilot.decision_audit NO FORCE ROW LEVEL SECURITY;
ALTER TABLE paypilot.decision_outcomes NO FORCE ROW LEVEL SECURITY;
SELECT paypilot.count_everything();
ALTER TABLE paypilot.decision_audit FORCE ROW LEVEL SECURITY;
ALTER TABLE paypilot.decision_outcomes FORCE ROW LEVEL SECURITY;
RESET ROLE;
