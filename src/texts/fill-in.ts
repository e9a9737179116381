/** What stands in a text as `{name}`. */
export type TextValues = Readonly<Record<string, string | number>>

/** Puts the values into a text; what has no value stays as it is. */
export function fillIn(text: string, values: TextValues): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => (Object.hasOwn(values, name) ? String(values[name]) : whole))
}

/** The names of what a text leaves open. */
export function placeholdersOf(text: string): string[] {
  return [...text.matchAll(/\{(\w+)\}/g)].map(([, name = '']) => name)
}
