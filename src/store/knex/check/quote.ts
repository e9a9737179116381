/** `app.people`, each part in quotes. */
export function quotedPath(path: string, quote: '"' | '`'): string {
  return path
    .split('.')
    .map((part) => quoted(part, quote))
    .join('.')
}

export function quoted(name: string, quote: '"' | '`'): string {
  return `${quote}${name.replaceAll(quote, quote + quote)}${quote}`
}
