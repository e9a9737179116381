import type { CounterStore } from './counter-store'

/**
 * Counts in both, and believes the larger: what this process counted while the shared store was down stays counted when
 * it is back, and no flood of other keys in the shared one makes it forget.
 */
export function countedHereToo(shared: CounterStore, local: CounterStore): CounterStore {
  return {
    async increment(key, windowSeconds, limit) {
      const [there, here] = await Promise.all([shared.increment(key, windowSeconds, limit), local.increment(key, windowSeconds, limit)])
      return there.count >= here.count ? there : here
    },
    async decrement(key) {
      await Promise.all([shared.decrement(key), local.decrement(key)])
    },
    async reset(key) {
      await Promise.all([shared.reset(key), local.reset(key)])
    },
  }
}
