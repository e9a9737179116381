/** Values for the `{name}` placeholders of a text. */
export type TextValues = Readonly<Record<string, string | number>>

/** Fills the values into a text. A placeholder without a value stays. */
export function fillIn(text: string, values: TextValues): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole))
}

/** Returns the names of the placeholders of a text. */
export function placeholdersOf(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}
