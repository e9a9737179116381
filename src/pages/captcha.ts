import { randomBytes } from 'node:crypto'
import type { Request } from 'express'
import { isPastSignupMails } from '../accounts/email-links/signup-mails'
import { captchaIsFor, isCaptchaAsked } from '../captcha/require-captcha'
import type { AuthContext } from '../context'
import type { GuardedAction } from '../http/guard-request'
import { Html, hidden, html, type Part } from '../http/html/document'
import type { Page } from '../http/html/send-page'
import type { Fields, Visit } from './page-site'

export interface CaptchaWidget {
  /** Null: the form is not asked. */
  readonly part: Part
  /** What the page needs to show the widget. */
  readonly page: Pick<Page, 'nonce' | 'sources'>
}

const none: CaptchaWidget = { part: null, page: {} }

/** For the form of the first action that is asked. A form of two actions says which one its widget is for. */
export function captchaWidget(visit: Visit, ...actions: readonly GuardedAction[]): Promise<CaptchaWidget> {
  return widgetWith(visit, actions, randomBytes(16).toString('base64'))
}

/** For a page with two forms: one policy, and so one nonce, lets the scripts of both widgets run. */
export async function captchaWidgets(
  visit: Visit,
  { form, passkey }: Readonly<Record<'form' | 'passkey', readonly GuardedAction[]>>,
): Promise<{ form: Part; passkey: Part; page: CaptchaWidget['page'] }> {
  const nonce = randomBytes(16).toString('base64')
  const [first, second] = [await widgetWith(visit, form, nonce), await widgetWith(visit, passkey, nonce)]
  return { form: first.part, passkey: second.part, page: { ...first.page, ...second.page } }
}

async function widgetWith({ ctx, req, reader }: Visit, actions: readonly GuardedAction[], nonce: string): Promise<CaptchaWidget> {
  const { captcha } = ctx
  for (const action of actions) {
    if (!captcha?.html || !(await isShown(ctx, req, action))) continue
    const told = actions.length > 1 ? hidden(widgetAction, action) : null
    const part = html`${told}${new Html(captcha.html(nonce, { action, locale: reader.lang }))}<noscript><p class="note">${reader.text('captcha.needs_script')}</p></noscript>
`
    return { part, page: { nonce, sources: captcha.csp ?? {} } }
  }
  return none
}

/** Past `throttle.signupMails`, the forms that can mail a stranger need the widget too. */
async function isShown(ctx: AuthContext, req: Request, action: GuardedAction): Promise<boolean> {
  return (await isCaptchaAsked(ctx, req, action)) || (action !== 'login' && isPastSignupMails(ctx))
}

const widgetAction = 'captcha_for'

/** The answer of the form, and its other fields. @param actions of the form's buttons, if it has more than one */
export function captchaOfForm(
  { ctx, req }: Visit,
  fields: Fields,
  actions: readonly GuardedAction[] = [],
): { captcha: { captcha?: string }; others: Fields } {
  if (!ctx.captcha) return { captcha: {}, others: fields }
  const { [ctx.captcha.field ?? 'captcha']: answer, ...others } = fields
  const action = actions.find((action) => action === fields[widgetAction])
  if (action) captchaIsFor(req, action)
  return { captcha: answer === undefined ? {} : { captcha: answer }, others }
}
