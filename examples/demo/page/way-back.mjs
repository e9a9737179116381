/** Where people came from, and how they come home from a provider. */
import { auth, delivery, sendInTurn } from './api.mjs'
import { leave, take } from './handover.mjs'

/** The page that sent the person to sign in: one of this app, or none. */
export const cameFrom = pageHere(new URLSearchParams(location.search).get('return_to'))

/** True: the browser is on its way there. */
export function goBack(page = cameFrom) {
  if (page) location.assign(page)
  return page !== null
}

/** The library brings people back where they came from. Where a script keeps the tokens, it brings a code for them to this page. */
export async function signInAt(provider) {
  const query = delivery === 'bearer' ? await appQuery() : cameFrom ? { return_to: cameFrom } : {}
  location.assign(`${auth}/oauth/${provider}/login?${new URLSearchParams(query)}`)
}

/** For links and confirmations by a provider, the same way home. */
export const home = delivery === 'bearer' ? { redirect_to: `${location.origin}/` } : undefined

/** Delivery `bearer`, on the way back: the answer of a login; null if nobody comes from a provider. */
export async function redeemCode() {
  const code = new URLSearchParams(location.search).get('code')
  const [verifier, page] = [take('verifier'), pageHere(take('return_to'))]
  if (!code) return null
  history.replaceState(null, '', location.pathname)
  const answer = await sendInTurn('POST', `${auth}/oauth/exchange`, { code, code_verifier: verifier })
  return { ...answer, page }
}

/** RFC 7636: only the page that has the verifier gets tokens for the code. */
async function appQuery() {
  const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)))
  leave('verifier', verifier)
  if (cameFrom) leave('return_to', cameFrom)
  const hash = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(verifier))
  return { ...home, code_challenge: base64url(new Uint8Array(hash)) }
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '')
}

/** Anybody can make up a link to this page: what leads elsewhere counts as none. A whole URL, because a path could begin with `//`. */
function pageHere(asked) {
  if (!asked || !URL.canParse(asked, location.origin)) return null
  const { origin, href } = new URL(asked, location.origin)
  return origin === location.origin ? href : null
}
