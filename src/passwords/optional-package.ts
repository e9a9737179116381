import { ConfigurationError } from '../core/errors'

/**
 * Returns what `load` requires. Returns null if the host did not install the package `name`. If the package is installed but one of its own
 * modules is missing, the function throws.
 *
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

/**
 * Returns true if Node or Yarn did not find the package `name`. The function reads only the first line of the message, because later lines
 * name the modules that required the package.
 */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown } // code may throw any value
  if (code !== 'MODULE_NOT_FOUND' || typeof message !== 'string') return false
  return (message.split('\n')[0] ?? '').split(/['" ]/).includes(name)
}
