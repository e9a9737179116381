/** The way back from a provider, in a browser that is not signed in any more as it was when the person set out. */
import { auth, callWithProof } from './api.mjs'
import { say } from './form.mjs'
import { explain } from './messages.mjs'
import { texts } from './texts.mjs'

const routes = { link_ticket: `${auth}/oauth/link/redeem`, reauthentication_ticket: `${auth}/reauthenticate` }

/** In delivery `bearer` a ticket comes home in the query, without a word about what it is for. */
export function ticketAddress(purpose, ticket) {
  return `/#${new URLSearchParams({ [purpose === 'confirm' ? 'reauthentication_ticket' : 'link_ticket']: ticket })}`
}

/** Nothing was linked or confirmed yet: the library hands out a ticket, which is worth something to that session alone. */
export async function redeemTicket() {
  const handedOut = new URLSearchParams(location.hash.slice(1))
  const name = Object.keys(routes).find((known) => handedOut.has(known))
  if (!name) return
  history.replaceState(null, '', location.pathname)
  const answer = await callWithProof('POST', routes[name], { ticket: handedOut.get(name) }).catch(() => null)
  if (answer?.ok) return say('done', name === 'link_ticket' ? null : texts.confirmedIt)
  say('notice', answer ? explain(answer.sessionEnded ? { code: 'OAUTH_STATE_MISMATCH' } : answer.body) : texts.unreachable)
}
