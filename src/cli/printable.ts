/**
 * Escapes the characters that control a terminal or begin a new line. Other people write the names and addresses in a database. Without the
 * escapes, such a text could move the cursor or look like another row.
 */
export function printable(value: unknown): string {
  return String(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}
