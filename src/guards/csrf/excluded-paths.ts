import type { Request } from 'express'
import { ConfigurationError } from '../../errors'

/**
 * Whether a request's path is excluded: by whole segments, from the app's root, under the app's own rule of letter case. The
 * path is the one Express routes by; one that anything behind us could read as another path (`..`, `%2e`, `//`, `\`, encoded
 * slashes, encoded twice) is never excluded, however it begins.
 * @throws ConfigurationError for what is no path
 */
export function excludedPaths(exclude: readonly string[] = []): (req: Request) => boolean {
  if (!Array.isArray(exclude)) throw new ConfigurationError('csrfGuard: exclude must be a list of paths.')
  const prefixes = exclude.map(segmentsOfPrefix)
  if (prefixes.length === 0) return () => false

  return (req) => {
    const path = req.baseUrl + req.path
    if (!isPlain(path)) return false
    const sameCase = req.app.enabled('case sensitive routing') ? (text: string) => text : lowerAscii
    const segments = sameCase(path).split('/')
    return prefixes.some((prefix) => prefix.every((segment, index) => sameCase(segment) === segments[index]))
  }
}

/** As Express compares them: in the one encoding a path is sent in, `%6f` for `o` being another path to it. */
function segmentsOfPrefix(prefix: unknown): readonly string[] {
  const isPath = typeof prefix === 'string' && /^\/[^/]/.test(prefix) && !/[?#*%:(){}]/.test(prefix) && prefix.isWellFormed()
  if (!isPath || !isPlain(encodeURI(prefix)))
    throw new ConfigurationError(
      'csrfGuard: exclude takes paths such as /webhooks, from the root, as people write them: without patterns, dots for folders, or an encoding.',
    )
  return encodeURI(prefix).replace(/\/$/, '').split('/')
}

/** Read in only one way, by whatever reads it next. */
function isPlain(path: string): boolean {
  if (!/^(\/[^/]+)*\/?$/.test(path) || /[\\\0]|%(00|25|2f|5c)/i.test(path)) return false
  return path.split('/').every((segment) => !isDots(segment))
}

/** `.`, `..` and their encodings; some servers cut off `;…` first. */
function isDots(segment: string): boolean {
  return /^(\.|%2e){1,2}(;|%3b|$)/i.test(segment)
}

function lowerAscii(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase())
}
