-- Who may do what. Roles belong to the whole server, so they may be there already.
--   paypilot_owner    owns schema and tables; nobody logs in as it
--   paypilot_service  the decision function logs in as it: SELECT and INSERT
--   paypilot_erasure  runs inside the erasure function only; nobody logs in as it
--   paypilot_eraser   granted to the operator who may erase a client
DO $$
DECLARE
    role_name text;
BEGIN
    FOREACH role_name IN ARRAY ARRAY['paypilot_owner', 'paypilot_erasure', 'paypilot_eraser', 'paypilot_service'] LOOP
        IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = role_name) THEN
            EXECUTE format('CREATE ROLE %I', role_name);
        END IF;
    END LOOP;
END
$$;

ALTER ROLE paypilot_service LOGIN;
-- A connection that was given up must not go on holding a lock or a slot.
ALTER ROLE paypilot_service SET statement_timeout = '5s';
ALTER ROLE paypilot_service SET idle_in_transaction_session_timeout = '5s';

-- Whoever runs this acts as the owner below, and is not the owner otherwise.
GRANT paypilot_owner TO CURRENT_USER WITH INHERIT FALSE, SET TRUE;

-- On RDS this is login by IAM token; with it, a password is refused.
DO $$
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rds_iam') THEN
        GRANT rds_iam TO paypilot_service;
    END IF;
END
$$;

-- PUBLIC may create temporary tables, and through them temporary functions, unless that is taken away.
DO $$
BEGIN
    EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO paypilot_service', current_database());
END
$$;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;

-- An RDS instance is the slice's own, so nobody else needs the server's other databases, where PUBLIC may do all that.
-- On a server that is shared they are others' to decide about.
DO $$
DECLARE
    database_name name;
BEGIN
    IF EXISTS (SELECT FROM pg_roles WHERE rolname = 'rdsadmin') THEN
        FOR database_name IN
            SELECT datname FROM pg_database
            WHERE datname IN ('postgres', 'template1') AND pg_has_role(datdba, 'USAGE')
        LOOP
            EXECUTE format('REVOKE ALL ON DATABASE %I FROM PUBLIC', database_name);
        END LOOP;
    END IF;
END
$$;

-- Large objects are written through functions of pg_catalog, which only a superuser can take from PUBLIC. On RDS nobody
-- is one: the proof says then that this is left open, and that there are none.
DO $$
DECLARE
    large_object_function regprocedure;
BEGIN
    IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN
        FOR large_object_function IN
            SELECT oid FROM pg_proc
            WHERE pronamespace = 'pg_catalog'::regnamespace AND (proname ~ '^lo_' OR proname IN ('lowrite', 'loread'))
        LOOP
            EXECUTE format('REVOKE EXECUTE ON FUNCTION %s FROM PUBLIC', large_object_function);
        END LOOP;
    END IF;
END
$$;
