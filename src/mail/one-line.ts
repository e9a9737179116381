/** Overrides and isolates of the bidirectional algorithm. A name with these characters could reorder the text around the name. */
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Control characters and all line breaks. Without these characters, a text cannot begin another header, line or paragraph. */
const breaking = /[\p{Cc}\u2028\u2029]+/gu

/** Makes a user's text safe for a single line or header. */
export function oneLine(words: string): string {
  return words.toWellFormed().replace(bidirectional, '').replace(breaking, ' ').trim()
}

/** Returns a name for a mail. Returns null if the cleaned name is empty. */
export function sayableName(name: string): string | null {
  return [...oneLine(name)].slice(0, 120).join('') || null
}
