import type { Request, Response } from 'express'
import type { AuthContext } from '../../context'
import { clientOf } from '../../core/client-key'
import { CsrfValidationFailedError, EmailLoginInvalidError } from '../../core/errors'
import { linkPage } from '../../http/html/link-page'
import { browserName, type Locale } from '../../http/locale'
import type { Route } from '../../http/routes'
import { refuseCrossSite } from '../../http/same-site'
import { sendSeeOther } from '../../http/send'
import { forgetUsedInvitation } from '../../invitations/carried'
import { leadToTasks } from '../../login-tasks/lead-to-tasks'
import { routeRateLimit } from '../../rate-limits/rate-limiter'
import { destinationOfChallenge } from '../../sessions/challenge'
import { clearEndedCookies } from '../../sessions/current-auth'
import { loginClient, setLoginCookies } from '../../sessions/delivery'
import { successTarget } from '../../sessions/destination'
import { newLoginAttempt } from '../../sessions/devices/login-limits'
import { sendChallenge } from '../../sessions/devices/send-challenge'
import type { LoginChallenge } from '../../sessions/login'
import type { EmailLoginRecord } from '../../store/auth-store'
import { signupOwnershipOf, signupOwnershipOfForm } from '../email-verification/signup-ownership'
import { loginLinkSummary } from '../email-verification/verify-address'
import { confirmEmailLogin, lookAtEmailLogin } from './confirm-email-login'
import { forgetRequest, requestOfBrowser } from './request-email-login'

/** A GET does not use the link, because mail scanners open links. The page's button logs in with cookies. */
export function emailLoginPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/email-login/:token',
    summary: 'Log in with the mailed link',
    before: [routeRateLimit(ctx, 'email_login_confirm')],
    refuses: [CsrfValidationFailedError, EmailLoginInvalidError],
    form: 'email_login',
    done: 'email_login', // never shown, because the form redirects
    formTargets: targetsOf(ctx),
    look: async (token, { locale, req }) => {
      const { login, asksPassword } = await lookAtEmailLogin(ctx, token, await signupOwnershipOf(ctx, req))
      return { password: asksPassword ? { canSkip: true } : null, items: await aboutLogin(ctx, req, login, locale) }
    },
    redeem: async ({ token, fields, locale, req, res }) => {
      refuseCrossSite(ctx, req)
      const evidence = await signupOwnershipOfForm(
        ctx,
        req,
        fields,
        async (presented) => (await lookAtEmailLogin(ctx, token, presented)).asksPassword,
      )
      const browserRequestId = requestOfBrowser(ctx, req)
      const elsewhere = landingOf(ctx)
      const attempt = newLoginAttempt(clientOf(req))
      const result = await confirmEmailLogin(ctx, { token }, loginClient(ctx, req), {
        evidence,
        locale,
        browserRequestId,
        elsewhere,
        attempt,
      })
      await clearEndedCookies(ctx, req, res)
      await forgetUsedInvitation(ctx, req, res, result.userId)
      if (browserRequestId !== null) forgetRequest(ctx, res)
      return {
        answer() {
          if (result.kind === 'challenge') return askForCode(ctx, req, res, result)
          if (result.kind === 'tasks') return leadToTasks(ctx, req, res, result, { redirect: sendSeeOther })
          setLoginCookies(ctx, res, result)
          sendSeeOther(res, result.returnTo ?? elsewhere)
        },
      }
    },
  })
}

function askForCode(ctx: AuthContext, req: Request, res: Response, { mfaToken }: LoginChallenge): void {
  const target = successTarget(ctx.settings, destinationOfChallenge(ctx, mfaToken)) ?? landingOf(ctx)
  sendChallenge(ctx, req, res, { mfaToken, target }, sendSeeOther)
}

/** For a browser that did not request the mail. */
function landingOf({ settings, prefix }: AuthContext): string {
  return settings.oauthSuccessRedirect ?? prefix
}

/** The `form-action` policy must allow the targets of the page's redirect. */
function targetsOf(ctx: AuthContext): string[] {
  const { trustedOrigins, publicUrl } = ctx.settings
  const landing = landingOf(ctx)
  return [
    ...new Set([...(URL.canParse(landing) ? [new URL(landing).origin] : []), ...(publicUrl === '' ? [] : [publicUrl]), ...trustedOrigins]),
  ]
}

/** The address; in another browser, when and with which browser the mail was requested; the account whose session the login replaces. */
async function aboutLogin(ctx: AuthContext, req: Request, login: EmailLoginRecord, locale: Locale): Promise<string[]> {
  const [address = '', ...replaced] = await loginLinkSummary(ctx, req, login.email, locale)
  return [address, ...(login.id === requestOfBrowser(ctx, req) ? [] : [askedFrom(ctx, login, locale)]), ...replaced]
}

function askedFrom({ texts }: AuthContext, { createdAt, userAgent }: EmailLoginRecord, locale: Locale): string {
  const browser = browserName(userAgent ?? '')
  const time = `${new Intl.DateTimeFormat(locale, { dateStyle: 'long', timeStyle: 'short', timeZone: 'UTC' }).format(createdAt)} UTC`
  return browser === null ? texts.say(locale, 'link.asked', { time }) : texts.say(locale, 'link.asked_with', { time, browser })
}
