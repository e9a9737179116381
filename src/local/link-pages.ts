import Joi from 'joi'
import type { AuthContext } from '../context'
import { evidenceOf } from '../first-proof/evidence'
import { evidenceOfForm, oldPassword } from '../first-proof/evidence-of-form'
import { routeBudget } from '../guards/route-budget'
import type { Route } from '../http/routes'
import { passwordText, validate } from '../http/validate'
import { linkPage } from '../pages/link-page'
import { passwordRefusal } from '../passwords/password-refusal'
import { clearEndedCookies } from '../session/ended-cookies'
import { activateOnly, lookAtActivation } from './activate'
import { lookAtReset, resetOnly } from './reset-password'

const passwords = Joi.object<{ new_password: string; confirm_password: string }>({
  new_password: passwordText().allow(''),
  confirm_password: passwordText().allow(''),
})

/** The page behind an activation link. It signs nobody in: a page can keep no token. */
export function activationPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/activate/:token',
    summary: 'Activate an account',
    sharesPath: true,
    before: [routeBudget(ctx, 'activate')],
    form: 'activate',
    done: 'activated',
    fields: oldPassword,
    look: async (token, { req }) => ({
      password: (await lookAtActivation(ctx, token, await evidenceOf(ctx, req))) ? { canSkip: true } : null,
    }),
    redeem: async ({ token, fields, locale, req, res }) => {
      const evidence = await evidenceOfForm(ctx, req, fields, (evidence) => lookAtActivation(ctx, token, evidence))
      const resetLink = await activateOnly(ctx, token, { evidence, locale })
      await clearEndedCookies(ctx, req, res)
      return resetLink && { resetToken: resetLink.token }
    },
  })
}

/** The page behind a reset link; signs nobody in either. */
export function resetPage(ctx: AuthContext): Route[] {
  return linkPage(ctx, {
    path: '/password-reset/:token',
    summary: 'Set a new password',
    fields: passwords,
    before: [routeBudget(ctx, 'password_reset_confirm')],
    form: 'password_reset',
    done: 'password_changed',
    look: async (token) => {
      await lookAtReset(ctx, token)
      return {}
    },
    redeem: async ({ token, fields, locale, req, res }) => {
      await resetOnly(ctx, { token, newPassword: readPassword(fields), locale, evidence: await evidenceOf(ctx, req) })
      await clearEndedCookies(ctx, req, res)
      return null
    },
  })
}

function readPassword(fields: unknown): string {
  const { new_password, confirm_password } = validate(passwords, fields)
  if (new_password !== confirm_password) throw passwordRefusal({ rule: 'mismatch' })
  return new_password
}
