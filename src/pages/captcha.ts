import { randomBytes } from 'node:crypto'
import { isCaptchaAsked } from '../captcha/require-captcha'
import type { GuardedAction } from '../http/guard-request'
import { Html, html, type Part } from '../http/html/document'
import type { Page } from '../http/html/send-page'
import type { Fields, Visit } from './page-site'

export interface CaptchaWidget {
  /** Null: the form is not asked. */
  readonly part: Part
  /** What the page needs to show the widget. */
  readonly page: Pick<Page, 'nonce' | 'sources'>
}

const none: CaptchaWidget = { part: null, page: {} }

/** For the form of the first action that is asked. */
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
    if (!captcha?.html || !(await isCaptchaAsked(ctx, req, action))) continue
    const part = html`${new Html(captcha.html(nonce, { action, locale: reader.lang }))}<noscript><p class="hint">${reader.text('captcha.needs_script')}</p></noscript>
`
    return { part, page: { nonce, sources: captcha.csp ?? {} } }
  }
  return none
}

/** The answer of the form, and its other fields. */
export function captchaOfForm({ ctx }: Visit, fields: Fields): { captcha: { captcha?: string }; others: Fields } {
  if (!ctx.captcha) return { captcha: {}, others: fields }
  const { [ctx.captcha.field ?? 'captcha']: answer, ...others } = fields
  return { captcha: answer === undefined ? {} : { captcha: answer }, others }
}
