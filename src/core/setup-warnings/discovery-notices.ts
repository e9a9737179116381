import { ConfigurationError } from '../errors'
import type { Logger } from '../logger'

/**
 * Returns a function that logs an error of the background request for a provider's discovery document. The function logs once for each
 * level. `warn`: the provider does not respond. `error`: the document cannot be used, in most cases because its issuer is wrong.
 */
export function discoveryNotices(provider: string, logger: Logger): (error: unknown) => void {
  const told = new Set<'warn' | 'error'>()
  return (error) => {
    const level = error instanceof ConfigurationError ? 'error' : 'warn'
    if (told.has(level)) return
    told.add(level)
    const reason = error instanceof Error ? error.message : String(error) // our own text with the issuer and the fault
    logger[level](
      { provider, reason },
      `doorward: provider ${provider} is not ready. Its logins get 502 until doorward can read its metadata.`,
    )
  }
}
