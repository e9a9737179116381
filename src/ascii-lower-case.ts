/** Changes only A to Z. SQLite's lower() does that too, and PostgreSQL's lower() under the collation "C". */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
