import type { RequestHandler } from 'express'
import type { Logger } from '../logger'

/** Looked at once, when the first request shows how we are mounted. */
export function checkMount(prefix: string, logger: Logger): RequestHandler {
  let isChecked = false
  return (req, _res, next) => {
    if (!isChecked) {
      isChecked = true
      // A proxy before us may have taken the first part of the public path away; Express ignores letter case here.
      const mountedAt = req.baseUrl.toLowerCase()
      if (mountedAt === '' || !prefix.toLowerCase().endsWith(mountedAt))
        logger.warn(
          { prefix },
          'doorward: the router is mounted elsewhere than option prefix says; redirect URIs and cookie paths follow the option.',
        )
      if (req.app.get('trust proxy') === true)
        logger.warn(
          {},
          "doorward: the app trusts every proxy ('trust proxy' is true), so clients choose their own address and escape every budget; name your proxies instead.",
        )
    }
    next()
  }
}
