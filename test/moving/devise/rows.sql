CREATE TABLE users (
    id bigint NOT NULL,
    email character varying DEFAULT ''::character varying NOT NULL,
    encrypted_password character varying DEFAULT ''::character varying NOT NULL,
    reset_password_token character varying,
    reset_password_sent_at timestamp without time zone,
    remember_created_at timestamp without time zone,
    confirmation_token character varying,
    confirmed_at timestamp without time zone,
    confirmation_sent_at timestamp without time zone,
    unconfirmed_email character varying,
    provider character varying,
    uid character varying,
    created_at timestamp(6) without time zone NOT NULL,
    updated_at timestamp(6) without time zone NOT NULL
);
CREATE SEQUENCE users_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE users_id_seq OWNED BY users.id;
ALTER TABLE ONLY users ALTER COLUMN id SET DEFAULT nextval('users_id_seq'::regclass);
INSERT INTO users VALUES (1, 'ada@example.com', '$2a$10$nWAwP6FG3dvXRkwP0cU2s.aGIFo4Q2VRM5ZSjWQ1wih8nNcY2ep8C', NULL, NULL, NULL, 'Zma8KPVixJiBH5pXUP8g', '2026-11-26 18:39:32.503492', '2026-11-26 18:39:29.637361', NULL, 'google_oauth2', 'google-1', '2026-11-26 18:39:29.637136', '2026-11-26 18:39:32.765181');
INSERT INTO users VALUES (2, 'waits@example.com', '$2a$10$5eac3/Ee3gKjAl4EueO4AOsPeswx0fPquRb378DQ0SD/R2RrwjU7u', NULL, NULL, NULL, 'Zw4WZ92Vx241eL23suXC', NULL, '2026-11-26 18:39:33.003136', NULL, NULL, NULL, '2026-11-26 18:39:33.002984', '2026-11-26 18:39:33.002984');
INSERT INTO users VALUES (3, 'grace@example.com', '', NULL, NULL, NULL, NULL, '2026-11-26 18:39:33.06034', NULL, NULL, 'google_oauth2', 'google-2', '2026-11-26 18:39:33.066844', '2026-11-26 18:39:33.066844');
SELECT pg_catalog.setval('users_id_seq', 3, true);
ALTER TABLE ONLY users
    ADD CONSTRAINT users_pkey PRIMARY KEY (id);
CREATE UNIQUE INDEX index_users_on_confirmation_token ON users USING btree (confirmation_token);
CREATE UNIQUE INDEX index_users_on_email ON users USING btree (email);
CREATE UNIQUE INDEX index_users_on_reset_password_token ON users USING btree (reset_password_token);
