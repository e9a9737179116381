import { ConfigurationError } from '../errors'
import type { Logger } from '../logger'

/**
 * Returns what the log says, once each, of a provider whose description cannot be read in the background: `warn` where it does not answer,
 * `error` where what it answers cannot be used, a document of another issuer mostly.
 */
export function discoveryNotices(provider: string, logger: Logger): (error: unknown) => void {
  const told = new Set<'warn' | 'error'>()
  return (error) => {
    const level = error instanceof ConfigurationError ? 'error' : 'warn'
    if (told.has(level)) return
    told.add(level)
    const reason = error instanceof Error ? error.message : String(error) // ours: it names the issuer and what is wrong
    logger[level](
      { provider, reason },
      `doorward: provider ${provider} is not ready: its logins are 502 until its description can be read.`,
    )
  }
}
