import type { Request } from 'express'
import type { AuthContext } from '../../context'
import { readAddress } from '../../core/client-key'
import { browserName, localeOf } from '../../http/locale'
import type { UserRecord } from '../../store/auth-store'
import type { NewDevice } from '../login'

/** What a notice says about the browser of this request. */
export function describeBrowser(ctx: AuthContext, req: Request, user: UserRecord): NewDevice {
  const browser = browserName(req.headers['user-agent'] ?? '')
  return { user, locale: localeOf(ctx, req), at: ctx.now(), browser, ip: readAddress(req.ip) }
}
