-- The names in braces are all that differs between SQLite and PostgreSQL.
-- A passage's number has the number of its document above its lower 20 bits. A document's number is never used again.
CREATE TABLE documents (
  number {key}, key text NOT NULL UNIQUE, id text NOT NULL, title text NOT NULL, updated_at text NOT NULL,
  digest text NOT NULL, audience {bytes} NOT NULL, source text NOT NULL, url text NOT NULL, place text NOT NULL,
  chunks integer NOT NULL, text text NOT NULL
);
CREATE INDEX documents_by_id ON documents (id);
CREATE INDEX documents_by_audience ON documents (audience, number);
-- Apart from the documents: an audience of hundreds of people is longer than an index of PostgreSQL takes.
CREATE TABLE audiences (digest {bytes} PRIMARY KEY, audience text NOT NULL);
CREATE TABLE settings (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE passages (
  number {key}, path text NOT NULL, name text NOT NULL, anchor text NOT NULL, line integer NOT NULL,
  page integer NOT NULL, text text NOT NULL
);
CREATE TABLE passage_vectors (number {key}, digest {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS vectors (digest {bytes} PRIMARY KEY, vector {bytes} NOT NULL);
CREATE TABLE postings (word {word} NOT NULL, passage bigint NOT NULL, impact integer NOT NULL, PRIMARY KEY (word, passage))
{postings};
CREATE INDEX postings_by_passage ON postings (passage);
CREATE TABLE totals (passages bigint NOT NULL, next_document bigint NOT NULL);
INSERT INTO totals VALUES (0, 1)
