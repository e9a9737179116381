/** Only A to Z, as SQLite's lower(), and PostgreSQL's under the collation "C". */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
