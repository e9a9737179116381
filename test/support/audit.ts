/** What `npm audit --json` says, as far as it is looked at. */
export interface Audit {
  message?: string
  /** `via`: advisories, or the names of the packages that bring it. */
  vulnerabilities?: Record<string, { via: readonly (string | { url: string })[] }>
}

/** The ids of advisories that the page does not speak of where it speaks of those that apply. */
export function unexplained({ vulnerabilities = {} }: Audit, page: string): string[] {
  const [, section = ''] = /^## Advisories that apply\n([\s\S]*?)(?=^## |(?![\s\S]))/m.exec(page) ?? []
  const found = Object.values(vulnerabilities).flatMap(({ via }) => via.map((one) => (typeof one === 'string' ? null : one.url)))
  const ids = found.filter((url) => url !== null).map((url) => url.split('/').at(-1) ?? url)
  return [...new Set(ids)].filter((id) => !section.includes(id))
}
