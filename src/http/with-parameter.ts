/** Adds a query parameter to a URL. The URL can have a query and a fragment. The value must not need encoding. */
export function withParameter(target: string, name: string, value: string): string {
  const [page = '', fragment] = target.split('#', 2)
  return `${page}${page.includes('?') ? '&' : '?'}${name}=${value}${fragment === undefined ? '' : `#${fragment}`}`
}
