import type { Response } from 'express'
import type { AuthContext } from '../../context'
import { type Answer, string, stringOrNull } from '../../http/description'
import type { Locale } from '../../http/locale'
import { setResult } from '../../http/outcome'
import { sendJson } from '../../http/send'
import type { LinkToken } from './email-link'

/** Describes the response of a route that uses `answerLinkRequest`. */
export function linkRequestAnswer(field: string): Answer {
  return {
    status: 202,
    description: 'The response is equal for every address. Only in development, the response contains the link.',
    schema: { type: 'object', properties: { message: string, [field]: stringOrNull }, required: ['message', field] },
  }
}

/**
 * Sends the same response for every link request. So the response does not show whether the address is known, unknown, taken, active,
 * pending, deactivated or rejected. The function makes the link after the response, so that the response time reveals nothing. If responses
 * contain links (never in production), the function makes the link before the response.
 */
export async function answerLinkRequest(
  ctx: AuthContext,
  res: Response,
  { name, field, locale }: { name: string; field: string; locale: Locale },
  makeLink: () => Promise<LinkToken | null>,
): Promise<void> {
  const link = ctx.showsLinks ? await makeLink() : null
  if (!ctx.showsLinks) ctx.background.run(name, makeLink)
  setResult(res, { url: link?.url ?? null })
  sendJson(res, 202, { message: ctx.texts.say(locale, 'message.link_requested'), [field]: link?.url ?? null })
}
