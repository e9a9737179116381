/** Overrides and isolates of the bidirectional algorithm: with them a name can make the words around it read otherwise. */
const bidirectional = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

/** Control characters and every break of a line: none may begin a header, a line or a paragraph of its own. */
const breaking = /[\p{Cc}\u2028\u2029]+/gu

/** Somebody's own words, fit to stand in a line or a header of ours. */
export function oneLine(words: string): string {
  return words.toWellFormed().replace(bidirectional, '').replace(breaking, ' ').trim()
}

/** A name as a mail says it; null where nothing is left to say. */
export function sayableName(name: string): string | null {
  return [...oneLine(name)].slice(0, 120).join('') || null
}
