/** Overrides and isolates of the bidirectional algorithm. With them a name could reorder the words around it. */
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Control characters and every line break, so that no text can begin another header, line or paragraph. */
const breaking = /[\p{Cc}\u2028\u2029]+/gu

/** Makes a text of a user's fit for one line or one header. */
export function oneLine(words: string): string {
  return words.toWellFormed().replace(bidirectional, '').replace(breaking, ' ').trim()
}

/** Returns a name for a mail, or null if nothing is left of it. */
export function sayableName(name: string): string | null {
  return [...oneLine(name)].slice(0, 120).join('') || null
}
