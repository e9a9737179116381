/**
 * Returns the text with A to Z in lower case. All other letters stay unchanged, as in SQLite's lower() and in PostgreSQL's lower() under
 * the collation "C".
 */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
