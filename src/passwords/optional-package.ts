import { ConfigurationError } from '../errors'

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

/** Looks for the module's name in the first line of the message of Node or Yarn. Later lines name the modules that required it. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown } // code may throw any value
  if (code !== 'MODULE_NOT_FOUND' || typeof message !== 'string') return false
  return (message.split('\n')[0] ?? '').split(/['" ]/).includes(name)
}
