/** Adds a parameter to the query of an address, which may have a query and a fragment. The value is one that needs no encoding. */
export function withParameter(target: string, name: string, value: string): string {
  const [page = '', fragment] = target.split('#', 2)
  return `${page}${page.includes('?') ? '&' : '?'}${name}=${value}${fragment === undefined ? '' : `#${fragment}`}`
}
