const known: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
])

/** Returns the display name of a provider, from its registration key. */
export function providerName(key: string): string {
  return known.get(key) ?? key.replace(/[:_-]+/g, ' ').replace(/(^| )\w/g, (letter) => letter.toUpperCase())
}
