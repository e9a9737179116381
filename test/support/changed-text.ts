/**
 * Changes the first character of the last part of a text, for example of its signature. The last character would not do: two values of it
 * can stand for the same bytes, and a text can end in the very characters that a test writes there.
 */
export function withChangedEnd(text: string): string {
  const start = text.lastIndexOf('.') + 1
  return text.slice(0, start) + (text[start] === 'A' ? 'B' : 'A') + text.slice(start + 1)
}
