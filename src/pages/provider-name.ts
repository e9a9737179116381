const known: ReadonlyMap<string, string> = new Map([
  ['github', 'GitHub'],
  ['gitlab', 'GitLab'],
  ['linkedin', 'LinkedIn'],
])

/** What people call a provider, by its registration key. */
export function providerName(key: string): string {
  return known.get(key) ?? key.replace(/[:_-]+/g, ' ').replace(/(^| )\w/g, (letter) => letter.toUpperCase())
}
