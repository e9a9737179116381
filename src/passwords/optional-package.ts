import { ConfigurationError } from '../errors'

/**
 * Returns what `load` requires. Null if the host did not install the package `name`. If another module is missing, that is a fault within
 * the package, not a choice of the host.
 *
 * @throws ConfigurationError when it is installed but does not load
 */
export function whenInstalled<T>(name: string, load: () => T): T | null {
  try {
    return load()
  } catch (cause) {
    if (isMissing(cause, name)) return null
    throw new ConfigurationError(`The package ${name} is installed but does not load; reinstall it, or remove it.`, { cause })
  }
}

/** Reads the module's name in the first line of the message, in Node and in Yarn. The later lines name the modules that required it. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown } // anything may be thrown
  if (code !== 'MODULE_NOT_FOUND' || typeof message !== 'string') return false
  return (message.split('\n')[0] ?? '').split(/['" ]/).includes(name)
}
