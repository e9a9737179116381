import { activate } from '../accounts/activate'
import { signupOwnershipOfForm } from '../accounts/email-verification/signup-ownership'
import { asksPassword } from '../accounts/link-pages'
import { hasMailedCodes } from '../accounts/mailed-codes/code-request'
import { presentedBy, redeem, withSignup } from '../accounts/mailed-codes/redeem-code'
import { hasPasswords } from '../core/config/every-setting'
import { withFixedErrorTime } from '../http/fixed-response-time'
import { localeOf } from '../http/locale'
import type { Route } from '../http/routes'
import { forgetUsedInvitation } from '../invitations/carried'
import { countRequest } from '../rate-limits/rate-limiter'
import { leaveNotice } from '../sessions/cookies'
import { clearEndedCookies } from '../sessions/current-auth'
import { loginClient, setLoginCookies } from '../sessions/delivery'
import { afterLogin } from './after-login'
import { type AwaitedMail, askingPassword, endWait, redeeming, requireMail, showCheckMail } from './check-mail'
import { requireFields } from './form-fault'
import { Elsewhere, formRoute, type GoOn } from './page-lines'
import type { Fields, PageSite, Visit } from './page-site'

type Redeem = (visit: Visit, fields: Fields, mail: AwaitedMail) => Promise<GoOn>

/** The forms of `/check-mail` with the code beside a link. They go to the routes that redeem it. */
export function mailedCodeForms(site: PageSite): Route[] {
  const { ctx } = site
  if (!hasMailedCodes(ctx)) return []
  const { localAccountsEnabled: isLocal } = ctx.settings
  return [
    ...(isLocal ? [codeForm(site, 'signup', activateByCode)] : []),
    ...(isLocal && hasPasswords(ctx.settings) ? [codeForm(site, 'forgotPassword', resetByCode)] : []),
    codeForm(site, 'emailVerification', verifyByCode),
    ...(isLocal ? [codeForm(site, 'emailChange', changeByCode)] : []),
  ]
}

function codeForm(site: PageSite, from: keyof typeof redeeming, redeemCode: Redeem): Route {
  const mailOf = (visit: Visit) => {
    const mail = requireMail(visit)
    if (mail.from === from) return mail
    throw new Elsewhere({ to: visit.reader.href('/check-mail') })
  }
  return formRoute(site, {
    path: redeeming[from].path,
    summary: `The form of /check-mail for ${redeeming[from].path}`,
    sentences: { INVALID_TOKEN: 'check_mail.wrong_code', UNAUTHORIZED: 'link.asking_session_first' },
    passwordField: 'new_password',
    keeps: ['code'],
    show: (visit, state) => showCheckMail(visit, mailOf(visit), state),
    async post(visit, fields) {
      const mail = mailOf(visit)
      requireFields(fields, 'code', ...(from === 'forgotPassword' ? ['new_password'] : []))
      const after = await redeemCode(visit, fields, mail)
      endWait(visit)
      return after
    },
  })
}

/** As the page of the link: in another browser than that of the sign-up, it asks for the password of the sign-up. */
async function activateByCode(visit: Visit, fields: Fields, { returnTo }: AwaitedMail): Promise<GoOn> {
  const { ctx, req, res } = visit
  const { code = '' } = fields
  await countRequest(ctx, 'activate', req)
  const presented = presentedBy(ctx, req, 'ACTIVATION', { code })
  const login = await askingPassword(code, () =>
    withFixedErrorTime(ctx, req, res, (ctx) =>
      redeem(ctx, presented, async (proof) => {
        const isAsked = asksPassword(ctx, proof)
        const shown = await signupOwnershipOfForm(ctx, req, fields, (shown) => isAsked(withSignup(shown, presented)))
        const evidence = withSignup(shown, presented)
        return activate(ctx, proof, loginClient(ctx, req), { evidence, byPage: true, locale: localeOf(ctx, req) })
      }),
    ),
  )
  await clearEndedCookies(ctx, req, res)
  await forgetUsedInvitation(ctx, req, res, login.userId)
  if (login.kind === 'session') setLoginCookies(ctx, res, login)
  return afterLogin({ ...visit, returnTo }, login)
}

async function resetByCode(visit: Visit, { code = '', new_password: newPassword = '' }: Fields): Promise<GoOn> {
  const login = await visit.ask.resetPassword({ code, newPassword })
  leaveNotice(visit.ctx, visit.res, 'password_changed')
  return afterLogin(visit, login)
}

async function verifyByCode({ ctx, res, reader, ask }: Visit, { code = '' }: Fields): Promise<GoOn> {
  const { resetLink } = await ask.verifyEmail({ code })
  if (resetLink) return { to: reader.href(`/password-reset/${resetLink.token}`) }
  leaveNotice(ctx, res, 'address_confirmed')
  return { to: reader.href('/account/email') }
}

async function changeByCode({ ctx, res, reader, ask }: Visit, { code = '' }: Fields): Promise<GoOn> {
  await ask.changeEmail({ code })
  leaveNotice(ctx, res, 'address_changed')
  return { to: reader.href('/account/email') }
}
