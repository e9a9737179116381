import { existsSync, readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { UsageError } from './answer'

/** Returns the package.json of a package that modules of this folder can load; null if there is no such package. */
export function manifestOf(folder: string, name: string): Record<string, unknown> | null {
  const places = createRequire(join(folder, 'package.json')).resolve.paths(name) ?? []
  const path = places.map((place) => join(place, name, 'package.json')).find((candidate) => existsSync(candidate))
  return path === undefined ? null : (JSON.parse(readFileSync(path, 'utf8')) as Record<string, unknown>) // npm writes an object
}

/**
 * Returns the folder's own package.json, or an empty object if the file does not exist.
 * @throws UsageError if package.json is not valid JSON
 */
export function ownManifest(folder: string): Record<string, unknown> {
  const path = join(folder, 'package.json')
  if (!existsSync(path)) return {}
  try {
    return Object(JSON.parse(readFileSync(path, 'utf8')))
  } catch {
    throw new UsageError('package.json is no JSON.')
  }
}
