import { ConfigurationError } from '../errors'

/**
 * What `load` requires, or null when the host did not install it. `name` is what it requires: any other missing module is
 * a fault within that package, not a choice of the host.
 *
 * @throws ConfigurationError when it is installed and does not load
 */
export function whenInstalled<T>(name: string, load: () => T): T | null {
  try {
    return load()
  } catch (cause) {
    if (isMissing(cause, name)) return null
    throw new ConfigurationError(`The package ${name} is installed but does not load; reinstall it, or remove it.`, { cause })
  }
}

/** The first line names the module, in Node's sentence as in Yarn's; the lines after it name who asked. */
function isMissing(error: unknown, name: string): boolean {
  const { code, message } = Object(error) as { code?: unknown; message?: unknown } // anything may be thrown
  if (code !== 'MODULE_NOT_FOUND' || typeof message !== 'string') return false
  return (message.split('\n')[0] ?? '').split(/['" ]/).includes(name)
}
