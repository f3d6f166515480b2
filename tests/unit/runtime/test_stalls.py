import asyncio

from runtime.stalls import StallWatch


def test_stall_watch_sees_how_long_the_loop_was_held():
    async def main():
        loop = asyncio.get_running_loop()
        watch = StallWatch(loop)
        watch.start()
        until = loop.time() + 0.2
        await asyncio.sleep(0.05)
        while loop.time() < until:  # hold the loop
            pass
        await asyncio.sleep(0.05)
        assert 0.08 <= watch.take() <= 2
        assert watch.take() < 0.08
        watch.stop()

    asyncio.run(main())
