-- The names in braces are all that differs between SQLite and PostgreSQL.
-- A document's number is the place of its first passage. The place in totals is the next one, and never goes back.
-- Postings are ordered by block first: a build writes into the last one, whose words then lie together.
CREATE TABLE documents (
  number {key}, key text NOT NULL UNIQUE, id text NOT NULL, title text NOT NULL, updated_at text NOT NULL,
  digest text NOT NULL, audience text NOT NULL, source text NOT NULL, url text NOT NULL, place text NOT NULL,
  chunks integer NOT NULL, text text NOT NULL
);
CREATE INDEX documents_by_id ON documents (id);
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE passages (
  number {key}, path text NOT NULL, name text NOT NULL, anchor text NOT NULL, line integer NOT NULL,
  page integer NOT NULL, text text NOT NULL
);
CREATE TABLE passage_vectors (number {key}, digest {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest {bytes} PRIMARY KEY, vector {bytes} NOT NULL);
CREATE TABLE postings (block bigint NOT NULL, word {word} NOT NULL, data {bytes} NOT NULL, PRIMARY KEY (block, word))
{postings};
CREATE TABLE totals (passages bigint NOT NULL, place bigint NOT NULL);
INSERT INTO totals VALUES (0, 1)
