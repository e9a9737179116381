import { ConfigurationError } from '../core/errors'

/**
 * Null: the host did not install the package `name`. If one of the package's own modules is missing, throws.
 * @throws ConfigurationError when the package is installed but does not load
 */
export function whenInstalled<T>(name: string, load: () => T): T | null {
  try {
    return load()
  } catch (cause) {
    if (isMissing(cause, name)) return null
    throw new ConfigurationError(`The package ${name} is installed but does not load; reinstall it, or remove it.`, { cause })
  }
}

/** Of Node or Yarn. Reads only the first line, because later lines name the modules that required the package. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown } // code may throw any value
  if (code !== 'MODULE_NOT_FOUND' || typeof message !== 'string') return false
  return (message.split('\n')[0] ?? '').split(/['" ]/).includes(name)
}
