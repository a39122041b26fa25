SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA agentcfg;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE agentcfg.agents (
    workspace_id uuid NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.api_keys (
    key_id text NOT NULL COLLATE pg_catalog."C",
    item text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.audit_log (
    workspace_id uuid NOT NULL,
    number text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.counters (
    workspace_id uuid NOT NULL,
    name text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value numeric(20,0),
    CONSTRAINT counters_value_check CHECK (((value >= (0)::numeric) AND (value <= '18446744073709551615'::numeric)))
)
WITH (fillfactor='70');
CREATE TABLE agentcfg.key_uses (
    key_id text NOT NULL COLLATE pg_catalog."C",
    item text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
)
WITH (fillfactor='70');
CREATE TABLE agentcfg.log_heads (
    workspace_id uuid NOT NULL,
    item text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value numeric(20,0),
    CONSTRAINT log_heads_value_check CHECK (((value >= (0)::numeric) AND (value <= '18446744073709551615'::numeric)))
)
WITH (fillfactor='70');
CREATE TABLE agentcfg.members (
    workspace_id uuid NOT NULL,
    user_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.memberships (
    user_id text NOT NULL COLLATE pg_catalog."C",
    workspace_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.meta (
    subject text NOT NULL COLLATE pg_catalog."C",
    item text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.provider_keys (
    workspace_id uuid NOT NULL,
    provider text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE UNLOGGED TABLE agentcfg.rate_windows (
    subject text NOT NULL COLLATE pg_catalog."C",
    ends_at bigint NOT NULL,
    used bigint NOT NULL
)
WITH (fillfactor='50');
CREATE TABLE agentcfg.sealed_keys (
    list text NOT NULL COLLATE pg_catalog."C",
    place text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.statuses (
    workspace_id uuid NOT NULL,
    agent_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
)
WITH (fillfactor='70');
CREATE TABLE agentcfg.store (
    one integer NOT NULL,
    format integer NOT NULL,
    base_version bigint NOT NULL,
    CONSTRAINT store_one_check CHECK ((one = 1))
);
CREATE TABLE agentcfg.workspace_api_keys (
    workspace_id uuid NOT NULL,
    key_id text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
CREATE TABLE agentcfg.workspaces (
    workspace_id uuid NOT NULL,
    item text NOT NULL COLLATE pg_catalog."C",
    version bigint NOT NULL,
    value json
);
INSERT INTO agentcfg.agents VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'gone', 33, '{"id":"01a2019e-3ea4-76d3-b797-acaada67bfa1","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","agent_id":"gone","display_name":"Gone","role":null,"description":null,"agent_type":"ai","model":null,"color":"#abc","persona_prompt":null,"capabilities":[],"parameters":{},"is_active":false,"created_at":"2026-11-22T04:57:57.668Z","updated_at":"2026-11-22T04:57:57.679Z"}');
INSERT INTO agentcfg.agents VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'late', 56, '{"id":"01a2019e-3ebe-7676-b07e-42c8cb4ecc74","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","agent_id":"late","display_name":"Late","role":null,"description":null,"agent_type":"ai","model":null,"color":null,"persona_prompt":null,"capabilities":[],"parameters":{},"is_active":false,"created_at":"2026-11-22T04:57:57.694Z","updated_at":"2026-11-22T04:57:57.696Z"}');
INSERT INTO agentcfg.agents VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'reviewer', 48, '{"id":"01a2019e-3e93-7442-b145-af031adb797c","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","agent_id":"reviewer","display_name":"Reviewer","role":null,"description":"Reads äll.","agent_type":"human","model":null,"color":null,"persona_prompt":null,"capabilities":[],"parameters":{},"is_active":true,"created_at":"2026-11-22T04:57:57.651Z","updated_at":"2026-11-22T04:57:57.690Z"}');
INSERT INTO agentcfg.agents VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'untouched', 44, '{"id":"01a2019e-3eb7-7151-861c-f26cfaa39a01","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","agent_id":"untouched","display_name":"Untouched","role":null,"description":null,"agent_type":"ai","model":null,"color":null,"persona_prompt":null,"capabilities":[],"parameters":{},"is_active":true,"created_at":"2026-11-22T04:57:57.687Z","updated_at":"2026-11-22T04:57:57.687Z"}');
INSERT INTO agentcfg.agents VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'writer', 37, '{"id":"01a2019e-3e90-71f9-a70b-6b6ab92b53fb","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","agent_id":"writer","display_name":"Writer","role":null,"description":null,"agent_type":"ai","model":"gpt-5","color":null,"persona_prompt":"You write.\nLong.\n","capabilities":["a","b","a"],"parameters":{"x":1e+16},"is_active":true,"created_at":"2026-11-22T04:57:57.648Z","updated_at":"2026-11-22T04:57:57.682Z"}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000001', 5, '{"id":"01a2019e-3e8b-747f-99c6-e1c3d0fc1fd1","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"workspace.created","target":{"type":"workspace","id":"01a2019e-3e8b-747e-acc4-bb2333f74c56"},"created_at":"2026-11-22T04:57:57.643Z","changes":{"name":{"from":null,"to":"From before"},"plan":{"from":null,"to":"enterprise"}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000002', 10, '{"id":"01a2019e-3e90-71fa-be15-bebbc65c569b","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.created","target":{"type":"agent","id":"writer"},"created_at":"2026-11-22T04:57:57.648Z","changes":{"display_name":{"from":null,"to":"Writer"},"agent_type":{"from":null,"to":"ai"},"model":{"from":null,"to":"gpt-5"},"persona_prompt":{"from":null,"to":"You write.\nBriefly.\n"},"capabilities":{"from":null,"to":["a","b","a"]},"parameters":{"from":null,"to":{"x":70,"y":0.7}},"is_active":{"from":null,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000003', 14, '{"id":"01a2019e-3e93-7443-bb7e-8106c24d9ca0","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.created","target":{"type":"agent","id":"reviewer"},"created_at":"2026-11-22T04:57:57.651Z","changes":{"display_name":{"from":null,"to":"Reviewer"},"agent_type":{"from":null,"to":"ai"},"capabilities":{"from":null,"to":[]},"parameters":{"from":null,"to":{}},"is_active":{"from":null,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000004', 17, '{"id":"01a2019e-3e96-7080-886f-c06bcfa8bff4","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.updated","target":{"type":"agent","id":"writer"},"created_at":"2026-11-22T04:57:57.654Z","changes":{"role":{"from":null,"to":"Author"},"parameters":{"from":{"x":70,"y":0.7},"to":{"x":1e+16}}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000005', 21, '{"id":"01a2019e-3ea4-76d4-931f-18074426fe95","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.created","target":{"type":"agent","id":"gone"},"created_at":"2026-11-22T04:57:57.668Z","changes":{"display_name":{"from":null,"to":"Gone"},"agent_type":{"from":null,"to":"ai"},"color":{"from":null,"to":"#abc"},"capabilities":{"from":null,"to":[]},"parameters":{"from":null,"to":{}},"is_active":{"from":null,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000006', 24, '{"id":"01a2019e-3ea7-777f-81e3-ee05c9be69f2","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.updated","target":{"type":"agent","id":"writer"},"created_at":"2026-11-22T04:57:57.671Z","changes":{}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000007', 28, '{"id":"01a2019e-3eaa-70fb-a913-c0e5da4da9ad","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"member.set","target":{"type":"member","id":"bob"},"created_at":"2026-11-22T04:57:57.674Z","changes":{"role":{"from":null,"to":"viewer"}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000008', 31, '{"id":"01a2019e-3ead-7368-a9f9-20284a583d63","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.updated","target":{"type":"agent","id":"reviewer"},"created_at":"2026-11-22T04:57:57.677Z","changes":{"description":{"from":null,"to":"Reads äll."},"agent_type":{"from":"ai","to":"human"}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000009', 35, '{"id":"01a2019e-3eaf-7246-9ff2-edf0457f6cda","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.deactivated","target":{"type":"agent","id":"gone"},"created_at":"2026-11-22T04:57:57.679Z","changes":{"is_active":{"from":true,"to":false}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000010', 38, '{"id":"01a2019e-3eb2-7255-ae23-53f1655eb72f","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.updated","target":{"type":"agent","id":"writer"},"created_at":"2026-11-22T04:57:57.682Z","changes":{"role":{"from":"Author","to":null},"persona_prompt":{"from":"You write.\nBriefly.\n","to":"You write.\nLong.\n"}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000011', 42, '{"id":"01a2019e-3eb5-755a-93b3-4ec67266fcf7","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.deactivated","target":{"type":"agent","id":"reviewer"},"created_at":"2026-11-22T04:57:57.685Z","changes":{"is_active":{"from":true,"to":false}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000012', 46, '{"id":"01a2019e-3eb7-7152-b1d4-aea418ab2935","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.created","target":{"type":"agent","id":"untouched"},"created_at":"2026-11-22T04:57:57.687Z","changes":{"display_name":{"from":null,"to":"Untouched"},"agent_type":{"from":null,"to":"ai"},"capabilities":{"from":null,"to":[]},"parameters":{"from":null,"to":{}},"is_active":{"from":null,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000013', 50, '{"id":"01a2019e-3eba-7155-a7af-16b5dc1737be","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.restored","target":{"type":"agent","id":"reviewer"},"created_at":"2026-11-22T04:57:57.690Z","changes":{"is_active":{"from":false,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000014', 54, '{"id":"01a2019e-3ebe-7677-a884-2a0f95fec8d2","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.created","target":{"type":"agent","id":"late"},"created_at":"2026-11-22T04:57:57.694Z","changes":{"display_name":{"from":null,"to":"Late"},"agent_type":{"from":null,"to":"ai"},"capabilities":{"from":null,"to":[]},"parameters":{"from":null,"to":{}},"is_active":{"from":null,"to":true}}}');
INSERT INTO agentcfg.audit_log VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '00000000000000000015', 58, '{"id":"01a2019e-3ec0-7042-8a17-9c9eefb3a4e6","workspace_id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","actor":{"type":"user","id":"ada"},"action":"agent.deactivated","target":{"type":"agent","id":"late"},"created_at":"2026-11-22T04:57:57.696Z","changes":{"is_active":{"from":true,"to":false}}}');
INSERT INTO agentcfg.counters VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'active_agents', 57, 3);
INSERT INTO agentcfg.log_heads VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '', 59, 15);
INSERT INTO agentcfg.members VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'ada', 3, '{"user_id":"ada","role":"owner","created_at":"2026-11-22T04:57:57.643Z"}');
INSERT INTO agentcfg.members VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', 'bob', 26, '{"user_id":"bob","role":"viewer","created_at":"2026-11-22T04:57:57.674Z"}');
INSERT INTO agentcfg.memberships VALUES ('ada', '01a2019e-3e8b-747e-acc4-bb2333f74c56', 4, '{}');
INSERT INTO agentcfg.memberships VALUES ('bob', '01a2019e-3e8b-747e-acc4-bb2333f74c56', 27, '{}');
INSERT INTO agentcfg.meta VALUES ('store', 'master_keys', 1, '{"keys":["Aa+yYQhznNcWkLqPW0yRY+OhFdIEd8DGiasR80ETVmJNmwLNDoHsq8xvwb1ES+ANXFe3++oKGOPmB4BWsvR7O8FG41gjg7KSOqQQIWo="]}');
INSERT INTO agentcfg.store VALUES (1, 1, 59);
INSERT INTO agentcfg.workspaces VALUES ('01a2019e-3e8b-747e-acc4-bb2333f74c56', '', 2, '{"id":"01a2019e-3e8b-747e-acc4-bb2333f74c56","name":"From before","plan":"enterprise","created_at":"2026-11-22T04:57:57.643Z","updated_at":"2026-11-22T04:57:57.643Z"}');
ALTER TABLE ONLY agentcfg.agents
    ADD CONSTRAINT agents_pkey PRIMARY KEY (workspace_id, agent_id);
ALTER TABLE ONLY agentcfg.api_keys
    ADD CONSTRAINT api_keys_pkey PRIMARY KEY (key_id, item);
ALTER TABLE ONLY agentcfg.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (workspace_id, number);
ALTER TABLE ONLY agentcfg.counters
    ADD CONSTRAINT counters_pkey PRIMARY KEY (workspace_id, name);
ALTER TABLE ONLY agentcfg.key_uses
    ADD CONSTRAINT key_uses_pkey PRIMARY KEY (key_id, item);
ALTER TABLE ONLY agentcfg.log_heads
    ADD CONSTRAINT log_heads_pkey PRIMARY KEY (workspace_id, item);
ALTER TABLE ONLY agentcfg.members
    ADD CONSTRAINT members_pkey PRIMARY KEY (workspace_id, user_id);
ALTER TABLE ONLY agentcfg.memberships
    ADD CONSTRAINT memberships_pkey PRIMARY KEY (user_id, workspace_id);
ALTER TABLE ONLY agentcfg.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (subject, item);
ALTER TABLE ONLY agentcfg.provider_keys
    ADD CONSTRAINT provider_keys_pkey PRIMARY KEY (workspace_id, provider);
ALTER TABLE ONLY agentcfg.rate_windows
    ADD CONSTRAINT rate_windows_pkey PRIMARY KEY (subject);
ALTER TABLE ONLY agentcfg.sealed_keys
    ADD CONSTRAINT sealed_keys_pkey PRIMARY KEY (list, place);
ALTER TABLE ONLY agentcfg.statuses
    ADD CONSTRAINT statuses_pkey PRIMARY KEY (workspace_id, agent_id);
ALTER TABLE ONLY agentcfg.store
    ADD CONSTRAINT store_pkey PRIMARY KEY (one);
ALTER TABLE ONLY agentcfg.workspace_api_keys
    ADD CONSTRAINT workspace_api_keys_pkey PRIMARY KEY (workspace_id, key_id);
ALTER TABLE ONLY agentcfg.workspaces
    ADD CONSTRAINT workspaces_pkey PRIMARY KEY (workspace_id, item);
