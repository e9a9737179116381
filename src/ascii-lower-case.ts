/** Changes A to Z only, as lower() does in SQLite, and in PostgreSQL under the collation "C". */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
