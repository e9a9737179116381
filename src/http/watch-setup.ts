import type { RequestHandler } from 'express'
import { clientOf } from '../core/client-key'
import type { Settings } from '../core/config/every-setting'
import type { SetupWarning, SetupWarnings } from '../core/setup-warnings/notices'
import {
  otherMount,
  secureCookiesOverHttp,
  trustsEveryProxy,
  unparsedBody,
  unreadableClient,
  untrustedProxy,
} from '../core/setup-warnings/request-notices'

interface Watched {
  readonly settings: Pick<Settings, 'cookieSecure' | 'publicUrl'>
  readonly prefix: string
  readonly notices: SetupWarnings
}

/**
 * Makes a handler that logs signs of a wrong configuration. The handler passes every request on. The handler checks the mount path only for
 * the first request.
 */
export function watchSetup({ settings, prefix, notices }: Watched): RequestHandler {
  let isFirst = true
  const tell = (notice: SetupWarning | null) => notice && notices.tell(notice)
  return (req, _res, next) => {
    if (isFirst) {
      isFirst = false
      tell(otherMount(req, prefix))
      tell(trustsEveryProxy(req))
    }
    tell(untrustedProxy(req))
    tell(secureCookiesOverHttp(req, settings))
    tell(unparsedBody(req))
    if (clientOf(req) === null) notices.tell(unreadableClient(req.ip))
    next()
  }
}
