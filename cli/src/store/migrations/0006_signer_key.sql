-- The key that signed a decision, by its fingerprint: names can be given anew, keys stay.
-- Null from the terminal, and for what was recorded before.
ALTER TABLE decisions ADD COLUMN signer_key TEXT;
