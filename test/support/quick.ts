/** True in the suite of `npm test`: SQLite only, and no server beside it. */
export const isQuick = process.env.DOORWARD_TEST_QUICK === '1'
