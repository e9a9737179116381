/**
 * Escapes the characters that control a terminal or begin a line. A name or an address in a database is a text of somebody else, and must not
 * move the cursor or look like another row.
 */
export function printable(value: unknown): string {
  return String(value).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`)
}
