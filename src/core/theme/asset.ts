import { createHash } from 'node:crypto'

/** A file that the pages load. The name of the file depends on the content, so browsers may cache the file for a year. */
export interface Asset {
  /** The full public path. */
  readonly path: string
  /** The path below the prefix. */
  readonly route: string
  readonly type: string
  readonly text: string
}

export function assetOf(prefix: string, extension: 'css' | 'js', type: string, text: string): Asset {
  const hash = createHash('sha256').update(text).digest('hex').slice(0, 16)
  const route = `/assets/pages-${hash}.${extension}`
  return Object.freeze({ path: `${prefix}${route}`, route, type, text })
}
